import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Outbound } from '@thv/http/outbound/outbound'
import { isThvError, ThvError } from '@thv/kernel/errors'
import { oncePerAttempt } from '../fetch/once-per-attempt.ts'
import type { FetchContext, FetchResult, FetchState, RegistryHandler } from '../fetch/registry-handler.ts'
import { sourceAddressPolicy } from '../fetch/source-addresses.ts'
import type { GitSource, SourceConfig } from '../fetch/source-config.ts'
import { sourceHash, stateIdentity } from '../fetch/source-hash.ts'
import { withinTimeLimit } from '../fetch/time-limit.ts'
import { refuseUnusable } from '../fetch/unusable-source.ts'
import { validateSource } from '../fetch/validate-source.ts'
import { createEntryCollector, type EntryCollector } from '../format/entry-collector.ts'
import { type ParseOptions, parseRegistryInTurns } from '../format/parse-registry-text.ts'
import { type FilesAtPath, filesAtPath } from './files-at-path.ts'
import { gitPlace } from './git-credential.ts'
import { failed, overLimit } from './git-error.ts'
import { createGitHttp } from './git-http.ts'
import { connectRemote, type GitRemote, notGivenOut, RefusedByServer } from './git-remote.ts'
import { TOO_LARGE } from './pack.ts'
import type { WorkBudget } from './pack-scan.ts'
import { type RefWish, refWish } from './ref-wish.ts'
import { fetchCommit, type RemoteObjects } from './remote-objects.ts'

export interface GitHandlerOptions {
  /** A server that is silent for longer is given up. */
  readonly idleMs?: number
  /** Of one pack. */
  readonly maxObjects?: number
}

type Settings = Required<GitHandlerOptions> & { readonly outbound: Outbound }

const DEFAULTS = { idleMs: 30_000, maxObjects: 500_000 }
/** Of everything that is inflated, by what may come over the wire. */
const MAX_INFLATION = 4
const PAUSE_AFTER_MS = 10

/** State that a fetch leaves behind: how the source was configured, what it had, and the hash that this gave. */
interface GitState {
  readonly identity: string
  readonly commit: string
  readonly hash: string
}

/** A file, or a folder of files, in a git repository: its newest commit, without a checkout and without git. */
export function createGitHandler(outbound: Outbound, given: GitHandlerOptions = {}): RegistryHandler {
  const options = { ...DEFAULTS, ...given, outbound }
  const fetchRegistry = (source: SourceConfig, context: FetchContext): Promise<FetchResult> =>
    oncePerAttempt(context, `git ${stateIdentity(source)}`, () => attempt(source, context, options))
  return {
    validate: validateSource,
    fetchRegistry,
    currentHash: async (source, context) => (await fetchRegistry(source, context)).hash,
  }
}

/** Everything within the limits of time and space, and every failure with a code and without secrets. */
async function attempt(source: SourceConfig, context: FetchContext, options: Settings): Promise<FetchResult> {
  const { git } = source
  const [problem] = git === undefined ? ['it has no git block'] : validateSource(source)
  if (git === undefined || problem !== undefined) throw failed(`the source is not configured as it must be: ${problem}`)
  try {
    return await withinTimeLimit(context, (limited) => load({ source, git, context: limited, options }))
  } catch (error) {
    if (context.signal.aborted)
      throw new ThvError('aborted', 'the git repository was not read to its end', { cause: context.signal.reason })
    throw isThvError(error) ? error : failed('the git repository cannot be read', error)
  }
}

interface Attempt {
  readonly source: SourceConfig
  readonly git: GitSource
  readonly context: FetchContext
  readonly options: Settings
}

async function load(attempt: Attempt): Promise<FetchResult> {
  const { source, git, context, options } = attempt
  const identity = stateIdentity(source)
  const known = knownState(context.state, identity)
  const unchanged = (commit: string, hash: string): FetchResult => ({ kind: 'unchanged', hash, state: { identity, commit, hash } })
  const wish = refWish(git)
  if (wish.kind === 'commit' && known?.commit === wish.oid) return unchanged(known.commit, known.hash) // it can have no other content

  const { repository, authorization } = await gitPlace(git)
  const policy = sourceAddressPolicy(context)
  const { signal, limits, place } = context
  const { maxWireBytes } = limits
  const { outbound, idleMs } = options
  const http = createGitHttp({ outbound, policy, signal, place, repository, authorization, idleMs, maxWireBytes })
  const remote = await connectRemote(http, wish)
  const tip = await remote.find(wish)
  if (known?.commit === tip) return unchanged(tip, known.hash)
  // Here, since a source that is read every second has nothing new nearly always.
  if (authorization !== undefined && repository.protocol === 'http:')
    context.warn(`the password for ${repository.href} is sent without TLS`)

  using objects = await fetchTip({ attempt, remote, wish, tip, place: http.place })
  const found = await filesAtPath(objects, git.path ?? 'registry.json')
  const hash = sourceHash(
    source,
    found.files.map(({ path, oid }) => `${path} ${oid}`),
  )
  if (known?.hash === hash) return unchanged(tip, hash)
  const { entries, problems } = await readFiles(attempt, objects, found)
  return { kind: 'full', entries, problems, hash, state: { identity, commit: tip, hash } }
}

interface Tip {
  readonly attempt: Attempt
  readonly remote: GitRemote
  readonly wish: RefWish
  readonly tip: string
  readonly place: string
}

async function fetchTip({ attempt: { context, options }, remote, wish, tip, place }: Tip): Promise<RemoteObjects> {
  const { limits, tempDir } = context
  const file = { tempDir, maxObjects: options.maxObjects }
  try {
    return await fetchCommit({ remote, tip, pack: { budget: workBudget(context), maxObjectBytes: limits.maxBytes }, file })
  } catch (error) {
    if (error instanceof RefusedByServer && wish.kind === 'commit') throw failed(`${notGivenOut(place, wish)} (${error.message})`)
    throw error
  }
}

async function readFiles(attempt: Attempt, objects: RemoteObjects, { files, isFolder, leftOut }: FilesAtPath): Promise<EntryCollector> {
  const { maxBytes, maxEntries } = attempt.context.limits
  const into = createEntryCollector(maxEntries)
  for (const { path, message } of leftOut) into.leaveOut(path, message)
  await objects.want(files.map(({ oid }) => oid))
  let bytes = 0
  let badFiles = leftOut.length
  for (const { path, oid } of files) {
    const content = await objects.file(oid)
    const problem = content === TOO_LARGE ? overLimit(`is larger than ${maxBytes} bytes`) : await parse(content, path)
    if (problem === undefined) continue
    if (!isFolder) throw new ThvError(problem.code, `${path}: ${problem.message}`)
    badFiles++
    into.leaveOut(path, problem.message)
  }
  if (files.length + leftOut.length === 0) into.warn('', [{ pointer: '', message: 'the folder has no .json file in it' }])
  refuseUnusable(into, { files: files.length + leftOut.length, badFiles })
  return into

  /** Errors that make the whole file bad. Limits of the whole source are thrown. */
  async function parse(content: Buffer, path: string): Promise<ThvError | undefined> {
    bytes += content.length
    if (bytes > maxBytes) throw overLimit(`the files of the folder have more than ${maxBytes} bytes together`)
    const { source, context } = attempt
    context.onFile?.(content)
    const options: ParseOptions = { format: source.format, strict: source.strict, into, ...(isFolder && { file: path }) }
    try {
      await parseRegistryInTurns(content, options, context.signal)
      return undefined
    } catch (error) {
      if (isThvError(error, 'source_failed')) return error
      throw error
    }
  }
}

function workBudget({ signal, clock, limits }: FetchContext): WorkBudget {
  const maxBytes = limits.maxWireBytes * MAX_INFLATION
  let left = maxBytes
  let since = clock.monotonic()
  return {
    spend(bytes) {
      left -= bytes
      if (left < 0) throw overLimit(`the git repository unpacks to more than ${maxBytes} bytes`)
    },
    async breathe() {
      if (clock.monotonic() - since < PAUSE_AFTER_MS) return
      await nextTurn()
      signal.throwIfAborted()
      since = clock.monotonic()
    },
  }
}

function knownState(state: FetchState | undefined, identity: string): GitState | undefined {
  const { commit, hash } = state ?? {}
  if (state?.['identity'] !== identity || typeof commit !== 'string' || typeof hash !== 'string') return undefined
  return { identity, commit, hash }
}
