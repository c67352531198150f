import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { filesBelow } from '@thv/testkit/image/bundled-program'
import { file } from '@thv/testkit/image/node-runtime'
import type { TarEntry } from '@thv/testkit/image/tar'
import { ROOT } from './run.ts'

/** In the image, beside the programs. */
const FOLDER = 'app/compile-cache'

/**
 * Node looks there for V8's code cache. Portable: files are known by their path relative to the cache, and any user may read it. Node
 * ignores it on a machine whose V8 wants another one, and one that cannot be written stays as it is.
 */
export const COMPILE_CACHE_SETTINGS = { NODE_COMPILE_CACHE: `/${FOLDER}`, NODE_COMPILE_CACHE_PORTABLE: '1' } as const

const START_LIMIT_MS = 60_000

/**
 * The cache of the programs, made by starting each of them once. The runner serves an HTTP backend, so that its cache has what a start
 * calls; the others explain themselves. V8 never writes the same bytes twice, so the cache is kept in dist as long as the programs stay the same.
 */
export async function compileCacheFiles(programs: readonly string[], files: readonly TarEntry[]): Promise<TarEntry[]> {
  const app = files.filter(({ path, content }) => path.startsWith('app/') && (content.kind === 'bytes' || content.kind === 'file'))
  const kept = join(ROOT, 'dist', `image-compile-cache-${hashOf(app)}`)
  if (!existsSync(kept)) await makeCache(kept, programs, app)
  return filesBelow(kept).map((path) => file(`${FOLDER}/${path.slice(kept.length + 1)}`, path))
}

function hashOf(files: readonly TarEntry[]): string {
  const hash = createHash('sha256').update(process.version)
  for (const each of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) hash.update(`\0${each.path}\0`).update(bytesOf(each))
  return hash.digest('hex').slice(0, 16)
}

function bytesOf({ content }: TarEntry): string | Uint8Array {
  if (content.kind === 'bytes') return content.bytes
  return content.kind === 'file' ? readFileSync(content.source) : ''
}

async function makeCache(kept: string, programs: readonly string[], app: readonly TarEntry[]): Promise<void> {
  mkdirSync(dirname(kept), { recursive: true })
  const root = mkdtempSync(join(dirname(kept), 'image-'))
  try {
    for (const entry of app) {
      mkdirSync(join(root, dirname(entry.path)), { recursive: true })
      writeFileSync(join(root, entry.path), bytesOf(entry))
    }
    for (const name of programs) {
      const program = join(root, 'app', `${name}.mjs`)
      if (name === 'thv-proxyrunner') await serveOnce(program, root)
      else await runProgram([program, '--help'], root)
    }
    if (readdirSync(join(root, FOLDER)).length === 0) throw new Error('the programs of the image have written no compile cache')
    moveUnlessThere(join(root, FOLDER), kept)
    removeOldCaches(kept)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Where two builds make the same cache at once, the first one stays. */
function moveUnlessThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if (!existsSync(to)) throw error
  }
}

const OLD_CACHES_KEPT_MS = 24 * 60 * 60_000

function removeOldCaches(kept: string): void {
  for (const name of readdirSync(dirname(kept)).filter((each) => each.startsWith('image-compile-cache-'))) {
    const path = join(dirname(kept), name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (path !== kept && stat && stat.mtimeMs < Date.now() - OLD_CACHES_KEPT_MS) rmSync(path, { recursive: true, force: true })
  }
}

/** Ends the runner as soon as it is ready. */
async function serveOnce(program: string, root: string): Promise<void> {
  const backend = createServer((_, response) => void response.writeHead(405).end()).listen(0, '127.0.0.1')
  await once(backend, 'listening')
  try {
    const { port } = backend.address() as AddressInfo
    const config = {
      schema_version: 'v0.1.0',
      name: 'image',
      host: '127.0.0.1',
      port: 0,
      transport: 'streamable-http',
      remote_url: `http://127.0.0.1:${port}/mcp`,
      remote_policy: { allow_loopback: true },
    }
    writeFileSync(join(root, 'runconfig.json'), JSON.stringify(config))
    await runProgram([program, 'run', '--config', join(root, 'runconfig.json'), '--runtime', 'local'], root, / is served at /)
  } finally {
    backend.closeAllConnections()
    backend.close()
  }
}

/** Runs a program to its end. Asks it to end when it prints a line that matches. */
async function runProgram(args: readonly string[], root: string, until?: RegExp): Promise<void> {
  const child = spawn(process.execPath, args, {
    env: { NODE_ENV: 'production', HOME: root, ...COMPILE_CACHE_SETTINGS, NODE_COMPILE_CACHE: join(root, FOLDER) },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: START_LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  createInterface({ input: child.stdout }).on('line', (line) => void (until?.test(line) && child.kill('SIGTERM')))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code ?? signal}: ${errors}`)
}
