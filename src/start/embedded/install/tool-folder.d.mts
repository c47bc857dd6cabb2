export declare function toolFolders(root: string): string[];
export declare function toolFolder(root: string): string;
export declare function toolName(program: string, version: string): string;
