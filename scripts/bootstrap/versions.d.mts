export declare function isAtLeast(version: string, oldest: string): boolean;
