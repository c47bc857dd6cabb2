export declare function dashboardFolder(root: string): string;
export declare function buildDashboard(
  root: string,
  print: (line: string) => void,
): Promise<boolean>;
/** Compressed bytes that a browser loads before the list of sessions is there. */
export declare function firstLoadOf(folder: string): Promise<number>;
