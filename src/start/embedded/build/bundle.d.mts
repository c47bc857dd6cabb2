export declare function findBundle(root: string): string | null;
export declare function programFile(folder: string, source: string): string;
/** @returns the bundle's folder @throws Error with the reason where it cannot be built */
export declare function buildBundle(root: string, print: (line: string) => void): Promise<string>;
/** Keeps the bundle, while this process runs, from being removed as an old one. */
export declare function holdBundle(folder: string): Promise<void>;
