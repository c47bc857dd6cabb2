// Not a language model: it finds the button of that name in what Stagehand shows of the page, and
// asks to click it. It stands where a model would, so that the example needs no account.
export function scriptedModel(button) {
  return {
    async generate({ messages }) {
      const shown = JSON.stringify(messages);
      const [, elementId] = new RegExp(`\\[(\\d+-\\d+)\\] button: ${button}`).exec(shown);
      const action = { elementId, description: button, method: 'click', arguments: [] };
      const structuredContent = { action, twoStep: false };
      const content = { type: 'text', text: JSON.stringify(structuredContent) };
      return { outputFormat: 'json_schema', role: 'assistant', content, structuredContent };
    },
  };
}
