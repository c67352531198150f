import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/*
 * Names of the tests that needed a second try, kept for the next run (ADR 0013). They lie beside the cached Kubernetes programs, outside
 * of the repository, so that a fresh clone on the same machine finds them too. A machine without that file has no run before.
 */

export function secondTriesFile(env: NodeJS.ProcessEnv = process.env): string {
  const base = env['THV_CACHE_DIR'] || env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  return join(base, 'toolhive-ts', 'second-tries.json')
}

export function readSecondTries(path: string): string[] {
  try {
    const names: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
  } catch {
    return [] // no run before, or one that was killed while it wrote
  }
}

export function writeSecondTries(path: string, names: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(names, null, 2)}\n`)
}
