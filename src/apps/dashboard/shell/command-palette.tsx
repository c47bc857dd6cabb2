import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { PAGES } from '../../../roles/api/dashboard/pages.ts';
import { menuPages } from '../api/caller.ts';
import { signOut } from '../api/credential.ts';
import { SERVICE_URL } from '../api/service-url.ts';
import { go, sessionPath } from './router.ts';
import { nextTheme } from './theme.ts';

type Command = { name: string; run: () => void };

const isOpen = signal(false);
export function openPalette(): void {
  isOpen.value = true;
}

/** Commands beside the pages of the menu. */
const COMMANDS: readonly Command[] = [
  { name: 'Active sessions', run: () => go('/?status=active') },
  { name: 'Failed sessions', run: () => go('/?status=failed') },
  { name: 'Waiting sessions', run: () => go('/?status=creating&status=queued') },
  { name: 'Change the theme', run: nextTheme },
  { name: 'API reference', run: () => location.assign(`${SERVICE_URL}/docs`) },
  { name: 'Sign out', run: () => signOut(null) },
];

/** Ctrl-K: a dialog that finds a command, or a session by its id. */
export function CommandPalette() {
  useEffect(() => {
    function onKey(event: KeyboardEvent) {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      openPalette();
    }
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return isOpen.value ? <Palette /> : null;
}

function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const found = commandsFor(text);
  function run(command: Command | undefined) {
    dialog.current?.close();
    command?.run();
  }
  function onKey(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setChosen((chosen + step + found.length) % Math.max(1, found.length));
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Commands"
      onClose={() => (isOpen.value = false)}
    >
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          run(found[chosen]);
        }}
      >
        <input
          type="search"
          aria-label="Command or session id"
          placeholder="A command, or the id of a session"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKey}
        />
        <ul>
          {found.map((command, index) => (
            <li key={command.name}>
              <button
                type="button"
                class={index === chosen ? 'chosen' : ''}
                onClick={() => run(command)}
              >
                {command.name}
              </button>
            </li>
          ))}
        </ul>
      </form>
    </dialog>
  );
}

function commandsFor(text: string): Command[] {
  const wanted = text.trim().toLowerCase();
  const pages = menuPages().map((name) => ({
    name: PAGES[name].title,
    run: () => go(PAGES[name].path),
  }));
  const found = [...pages, ...COMMANDS].filter(({ name }) => name.toLowerCase().includes(wanted));
  if (!wanted.startsWith('ses_')) return found;
  const id = text.trim();
  return [{ name: `Session ${id}`, run: () => go(sessionPath(id)) }, ...found];
}
