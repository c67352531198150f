import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describeOwner, takeBuildLock } from '../cluster/programs/build-lock.ts'

const run = promisify(execFile)
const INSTALL_LIMIT_MS = 300_000

export interface PythonEnv {
  readonly python: string
  /** Folder of the programs that the packages brought. */
  readonly bin: string
}

/**
 * A virtual environment with exactly these packages (`name==version`), made once per machine and list. Where python3 or its venv is
 * missing, they are installed from Debian's packages, which needs root. A half-made environment has no stamp and is made again. Another test
 * file that makes one meanwhile is waited for.
 */
export async function ensurePythonEnv(packages: readonly string[]): Promise<PythonEnv> {
  const key = createHash('sha256').update(packages.toSorted().join('\n')).digest('hex').slice(0, 16)
  const root = join(cacheRoot(), 'python')
  const folder = join(root, key)
  const stamp = join(folder, 'complete')
  const env = { python: join(folder, 'bin', 'python'), bin: join(folder, 'bin') }
  if (existsSync(stamp)) return env
  const lock = await takeBuildLock(`${root}.lock`, { onWait: (owner) => console.log(`python: ${describeOwner(owner)} installs packages`) })
  try {
    if (existsSync(stamp)) return env
    console.log(`python: installing ${packages.join(', ')} into ${folder}; once per machine`)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(root, { recursive: true })
    if (!(await hasVenv())) await installPython()
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_LIMIT_MS })
    await run(env.python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages], { timeout: INSTALL_LIMIT_MS })
    writeFileSync(stamp, packages.join('\n'))
    return env
  } finally {
    await lock.release()
  }
}

/** Debian ships venv without the part that makes it useful, so both are asked for. */
async function hasVenv(): Promise<boolean> {
  try {
    await run('python3', ['-c', 'import venv, ensurepip'])
    return true
  } catch {
    return false // missing or incomplete: what to do about it is the same
  }
}

async function installPython(): Promise<void> {
  console.log('python: installing python3 and python3-venv with apt-get')
  await run('apt-get', ['update'], { timeout: INSTALL_LIMIT_MS })
  await run('apt-get', ['install', '-y', '--no-install-recommends', 'python3', 'python3-venv'], { timeout: INSTALL_LIMIT_MS })
}

function cacheRoot(): string {
  const base = process.env['THV_CACHE_DIR'] || process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  return join(base, 'toolhive-ts')
}
