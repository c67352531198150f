export function runBundled(entry: string): Promise<void>
export function ensureBundle(entry: string, onBuild?: () => void): Promise<string>
export function noticesOf(bundle: string): string
export function bundleParts(bundle: string): string[] | undefined
