import { randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { findProgram, isExecutable } from '../find-program.ts'
import { withInstallLock } from '../install-lock.ts'
import { INSTALL_LIMIT_MS, type InstallOptions } from '../run-installer.ts'
import { findPip, wheelFromIndexes, wheelFromPip } from './fetch-wheel.ts'
import { type PackageIndexes, packageIndexes } from './package-indexes.ts'
import { type UvRelease, uvRelease } from './uv-release.ts'
import { readZipEntry } from './zip-entry.ts'

export interface Uv {
  readonly file: string
  /** Variables it needs besides: where packages come from, when only pip is configured. */
  readonly env: Readonly<Record<string, string>>
}

type Machine = Pick<InstallOptions, 'dataDir' | 'env'>

const MAX_PROGRAM = 512 << 20

/**
 * The machine's uv, or one of our own: its wheel is fetched once into the data folder, by pip or from the index that the configuration
 * of pip or uv names. `id` is the package that needs it. Throws `program_missing`, which says how to install uv.
 */
export async function findUv(id: string, options: InstallOptions, release = uvRelease()): Promise<Uv> {
  const found = await findProgram(['uv'], options.env['PATH'])
  if (found !== undefined) return { file: found, env: {} }
  const indexes = await packageIndexes(options.env)
  const own = ownUv(options, release)
  if (!(await isExecutable(own))) {
    const { signal, log, limitMs = INSTALL_LIMIT_MS, clock = systemClock } = options
    const onWait = (holder: string) => log.info(`waiting for ${holder}, which fetches uv`)
    const work = async () => {
      if (!(await isExecutable(own))) await fetchUv(id, own, { options, release, indexes })
    }
    await withInstallLock(`${dirname(own)}.lock`, work, { limitMs, signal, clock, onWait })
  }
  return { file: own, env: indexes.onlyPip ? uvVariables(indexes) : {} }
}

/** Throws `program_missing` when uv is neither here nor can be fetched; does not fetch it. */
export async function checkUv(id: string, options: Machine, release = uvRelease()): Promise<void> {
  if ((await findProgram(['uv'], options.env['PATH'])) !== undefined || (await isExecutable(ownUv(options, release)))) return
  if ((await findPip(options.env)) !== undefined || (await packageIndexes(options.env)).urls.length > 0) return
  throw missing(id)
}

function ownUv({ dataDir }: Machine, { version }: UvRelease): string {
  return join(dataDir, 'uv', version, 'uv')
}

interface Fetching {
  readonly options: InstallOptions
  readonly release: UvRelease
  readonly indexes: PackageIndexes
}

async function fetchUv(id: string, own: string, { options, release, indexes }: Fetching): Promise<void> {
  const { signal, log } = options
  const pip = await findPip(options.env)
  const ways: (() => Promise<Buffer>)[] = [
    ...(pip === undefined ? [] : [() => wheelFromPip(pip, release, options)]),
    ...(indexes.urls.length === 0 ? [] : [() => wheelFromIndexes(indexes, release, options)]),
  ]
  const reasons: string[] = []
  for (const way of ways) {
    try {
      const wheel = await way()
      const program = await readZipEntry(wheel, `uv-${release.version}.data/scripts/uv`, MAX_PROGRAM)
      await place(own, program)
      log.info(`fetched uv ${release.version}`)
      return
    } catch (error) {
      signal.throwIfAborted()
      reasons.push(errorMessage(error).replace(/^image: /, ''))
    }
  }
  throw missing(id, reasons)
}

/** A file that is there is complete. */
async function place(file: string, content: Buffer): Promise<void> {
  const staging = `${file}.${randomUUID()}`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  try {
    await writeFile(staging, content, { mode: 0o755 })
    await rename(staging, file)
  } finally {
    await rm(staging, { force: true })
  }
}

function uvVariables({ urls: [first = '', ...more], caFile }: PackageIndexes): Record<string, string> {
  return {
    UV_DEFAULT_INDEX: first,
    ...(more.length > 0 && { UV_INDEX: more.join(' ') }),
    ...(caFile !== undefined && { SSL_CERT_FILE: caFile }),
  }
}

function missing(id: string, reasons: readonly string[] = []): ThvError {
  const tried =
    reasons.length === 0
      ? 'there is neither pip nor a configured package index to fetch it from'
      : `it could not be fetched: ${reasons.join('; ')}`
  return new ThvError(
    'program_missing',
    `image: ${id} is installed by uv, which is not on PATH, and ${tried}. Install uv (https://docs.astral.sh/uv/getting-started/installation), for example with: pip install uv`,
  )
}
