import { spawn } from 'node:child_process'
import { ensureBundle } from '../scripts/bundle.mjs'

const LIMIT_MS = 120_000

/** Bundles a script of this folder, runs it in a process of its own and reads the one JSON line that it prints. */
export async function measure<T>(script: string, env: Record<string, string> = {}): Promise<T> {
  const bundle = await ensureBundle(`bench/${script}`)
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const child = spawn(process.execPath, [bundle], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: LIMIT_MS,
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.on('error', reject)
  child.on('close', (code) => {
    const text = Buffer.concat(chunks).toString('utf8')
    if (code !== 0) reject(new Error(`${script} ended with code ${code}: ${text}`))
    else resolve(JSON.parse(text) as T)
  })
  return promise
}

/** Runs two scripts in turns, so that a slow minute of the machine hits both. */
export async function interleaved<T>(
  rounds: number,
  ours: () => Promise<T>,
  baseline: () => Promise<T>,
): Promise<{ ours: T[]; baseline: T[] }> {
  const results: { ours: T[]; baseline: T[] } = { ours: [], baseline: [] }
  for (let round = 0; round < rounds; round++) {
    results.baseline.push(await baseline())
    results.ours.push(await ours())
  }
  return results
}
