type Named = { image: string; digest: string | null };
export declare const FILES: string[];
export declare function imagesIn(text: string): Named[];
export declare function renew(
  folder: string,
  registry: string | undefined,
  print: (line: string) => void,
): Promise<void>;
