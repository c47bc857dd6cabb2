/**
 * Parts of files in deploy/ that are written from a table of the product. A part is the lines
 * between `# begin <name>` and `# end <name>`; what follows the name in the first line is a remark.
 */

/** @throws Error if a part is not in the text once, or the text has one that is not given */
export function withParts(text: string, parts: Readonly<Record<string, readonly string[]>>) {
  const found: string[] = [];
  const written = text.replace(
    /^( *)# begin ([\w -]+?)(?:: .*)?\n[^]*?^ *# end \2\n/gm,
    (whole, indent: string, name: string) => {
      found.push(name);
      const begin = whole.slice(0, whole.indexOf('\n'));
      const lines = (parts[name] ?? []).map((line) => `${indent}${line}`);
      return `${[begin, ...lines, `${indent}# end ${name}`].join('\n')}\n`;
    },
  );
  if (found.toSorted().join() !== Object.keys(parts).toSorted().join())
    throw new Error(`has the parts ${found.join(', ')}, not ${Object.keys(parts).join(', ')}`);
  return written;
}
