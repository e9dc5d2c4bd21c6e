export interface Installation {
  readonly root: string;
  readonly home: string;
  readonly nodeVersion: string;
}

export declare function isStampValid(installation: Installation): boolean;
export declare function clearStamp(installation: Installation): void;
export declare function writeStamp(installation: Installation): void;
