export function runBundled(entry: string): Promise<void>
export function ensureBundle(entry: string): Promise<string>
