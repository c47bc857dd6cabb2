/** Copies an example to the clipboard; the rest of the page works without this. */
for (const figure of document.querySelectorAll('figure')) {
  const button = figure.querySelector('button');
  const pre = figure.querySelector('pre');
  button.addEventListener('click', () => {
    // Only pages of a secure origin may write there: elsewhere the text is selected instead.
    if (navigator.clipboard === undefined) {
      getSelection().selectAllChildren(pre);
      say(button, 'Selected');
    } else
      navigator.clipboard.writeText(pre.textContent).then(
        () => say(button, 'Copied'),
        () => say(button, 'Not copied'),
      );
  });
}

function say(button, word) {
  button.textContent = word;
  setTimeout(() => (button.textContent = 'Copy'), 1500);
}
