import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { MEMORY_SETTINGS } from '@thv/programs/memory-settings'
import { ensureBundle } from '../../scripts/bundle.mjs'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The last state without the memory settings, the release of idle memory and bundles in parts. */
const COMMIT_BEFORE = '2d6672a'
const BUILD_LIMIT_MS = 300_000

export type App = 'cli' | 'operator' | 'proxyrunner' | 'registry'

/** One version of all programs, and the environment that its image gives them. */
export interface State {
  readonly name: 'before' | 'now'
  readonly root: string
  readonly env: Readonly<Record<string, string>>
  bundle(app: App): Promise<string>
}

/** Its image carries a compile cache; here the first start of a program makes it, and counts for nothing. */
export function stateNow(): State {
  const env = { ...MEMORY_SETTINGS, NODE_COMPILE_CACHE: join(ROOT, 'dist', 'bench-compile-cache') }
  return { name: 'now', root: ROOT, env, bundle: (app) => ensureBundle(`apps/${app}/src/main.ts`) }
}

/**
 * The commit in a folder of dist, kept from run to run. It takes the installed packages of this checkout, except its own workspaces: both
 * states differ in our code alone.
 */
export async function stateBefore(log: (line: string) => void): Promise<State> {
  const root = join(ROOT, 'dist', `bench-${COMMIT_BEFORE}`)
  if (!existsSync(root)) {
    log(`unpacking ${COMMIT_BEFORE} …`)
    await unpack(root)
  }
  return { name: 'before', root, env: {}, bundle: (app) => bundleBefore(root, app) }
}

async function unpack(root: string): Promise<void> {
  const folder = `${root}.${process.pid}`
  await mkdir(folder, { recursive: true })
  try {
    await run('git', ['cat-file', '-e', COMMIT_BEFORE], { cwd: ROOT }).catch(() => {
      throw new Error(`the commit ${COMMIT_BEFORE} is not in this clone; get it with: git fetch --unshallow`)
    })
    await run('git', ['archive', '--output', join(folder, 'sources.tar'), COMMIT_BEFORE], { cwd: ROOT })
    await run('tar', ['-xf', 'sources.tar'], { cwd: folder })
    await rm(join(folder, 'sources.tar'))
    await linkPackages(folder)
    await rename(folder, root)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function linkPackages(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '@thv'), { recursive: true })
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (name !== '@thv') await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  for (const group of ['packages', 'apps'])
    for (const name of await readdir(join(folder, group))) await symlink(join('../..', group, name), join(modules, '@thv', name))
}

/** By its own bundler, in a process of its own. */
async function bundleBefore(root: string, app: App): Promise<string> {
  const bundler = pathToFileURL(join(root, 'scripts/bundle.mjs')).href
  const script = `console.log(await (await import(${JSON.stringify(bundler)})).ensureBundle('apps/${app}/src/main.ts'))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { cwd: root, timeout: BUILD_LIMIT_MS })
  return stdout.trim()
}
