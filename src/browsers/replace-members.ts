import type { Browsers } from './browsers.ts';

/** The same browsers with other members in place of some. */
export function replaceMembers(browsers: Browsers, members: Partial<Browsers>): Browsers {
  // A spread copy would lose the methods of a class.
  return new Proxy(browsers, {
    get(target, name): unknown {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
