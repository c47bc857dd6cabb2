import { signal } from '@preact/signals';

const STORED_AS = 'bss-theme';
const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

const stored = localStorage.getItem(STORED_AS);
export const theme = signal<Theme>(THEMES.find((name) => name === stored) ?? 'system');

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.value;
}

/** System, light, dark, and again. */
export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system';
  localStorage.setItem(STORED_AS, theme.value);
  applyTheme();
}
