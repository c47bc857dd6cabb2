type Package = { path: string; name: string; version: string; license?: string };
export declare function thirdPartyText(root: string, bundled: readonly string[]): string;
export declare function productionPackages(root: string): Package[];
