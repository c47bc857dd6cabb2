/** Icons of buttons; each button has a name of its own. */

const DRAWINGS = {
  search: 'M7 2a5 5 0 1 0 3.1 8.9l3.5 3.5M7 2a5 5 0 0 1 3.1 8.9',
  theme: 'M8 2a6 6 0 1 0 0 12ZM8 2a6 6 0 0 1 0 12M10 3.5v9M12 4.8v6.4',
  leave: 'M6 2H3v12h3M7 8h7M11 5l3 3-3 3',
} as const;

export function Icon({ name }: { name: keyof typeof DRAWINGS }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={DRAWINGS[name]} />
    </svg>
  );
}
