import { type FSWatcher, watch } from 'node:fs'
import { opendir, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Logger } from '@thv/telemetry/log'

export interface FileWatcherOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Files of this source may be others than before. */
  readonly onChange: (source: string) => Promise<void>
  readonly debounceMs?: number
  /** For file systems that report nothing, and for files that a symbolic link leads to. */
  readonly pollMs?: number
}

/** Follows the files and folders of sources. */
export interface FileWatcher extends AsyncDisposable {
  /** Exactly these, by name. Those that stay as they are stay watched. */
  set(paths: ReadonlyMap<string, string>): void
}

interface Watched {
  readonly path: string
  close(): Promise<void>
}

/** So many files of a folder are looked at one by one; changes inside further ones are seen where the file system reports them. */
const MAX_STATS = 500

export function createFileWatcher(options: FileWatcherOptions): FileWatcher {
  const watched = new Map<string, Watched>()
  const closing = new Set<Promise<void>>()

  function drop(source: string, one: Watched): void {
    watched.delete(source)
    const closed = one.close().finally(() => closing.delete(closed))
    closing.add(closed)
  }

  return {
    set(paths) {
      for (const [source, one] of watched) if (paths.get(source) !== one.path) drop(source, one)
      for (const [source, path] of paths) if (!watched.has(source)) watched.set(source, watchPath(source, path, options))
    },
    async [Symbol.asyncDispose]() {
      for (const [source, one] of watched) drop(source, one)
      await Promise.all(closing)
    },
  }
}

function watchPath(source: string, path: string, options: FileWatcherOptions): Watched {
  const { clock, log, onChange, debounceMs = 200, pollMs = 5_000 } = options
  const stopped = new AbortController()
  const { signal } = stopped
  let wake = () => {}
  /** The folder above tells of a file that is replaced, the path itself of files in a folder. */
  const watchers = [dirname(path), path].flatMap((place) => openWatcher(place, () => wake()) ?? [])

  async function firstSight(): Promise<string> {
    const now = await fingerprint(path)
    if (signal.aborted || isError(now)) return now
    return (await tell()) ? now : ''
  }

  /** False: the change must be reported again. */
  async function tell(): Promise<boolean> {
    try {
      await onChange(source)
      return true
    } catch (error) {
      // It is looked at again with the next poll.
      log.debug('a changed file could not be made due', { source, error: errorMessage(error) })
      return false
    }
  }

  async function run(): Promise<void> {
    // A sync may have read the files just before they changed and this began: those that are there count as changed once.
    let seen = await firstSight()
    while (!signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      wake = () => resolve(true)
      const timer = clock.setTimer(pollMs, () => resolve(false))
      signal.addEventListener('abort', wake, { once: true })
      const told = await promise
      timer.cancel()
      signal.removeEventListener('abort', wake)
      if (told) await clock.sleep(debounceMs, signal).catch(() => undefined) // stopped: the loop sees it
      const now = await fingerprint(path)
      if (signal.aborted || now === seen) continue
      if (await tell()) seen = now
    }
  }

  const running = run()
  return {
    path,
    async close() {
      stopped.abort()
      for (const watcher of watchers) watcher.close()
      await running
    },
  }
}

/** Undefined where the system cannot watch: then the path is looked at now and then. */
function openWatcher(place: string, onEvent: () => void): FSWatcher | undefined {
  try {
    return watch(place, { persistent: false }, onEvent).on('error', () => undefined)
  } catch {
    return undefined // not there yet, or too many watchers
  }
}

const ERROR = 'error '

function isError(print: string): boolean {
  return print.startsWith(ERROR)
}

/** Another whenever the content may be another. */
async function fingerprint(path: string): Promise<string> {
  try {
    const facts = await stat(path)
    if (!facts.isDirectory()) return factsOf(facts)
    const names: string[] = []
    for await (const { name } of await opendir(path)) {
      if (name.endsWith('.json') && !name.startsWith('.') && names.push(name) > MAX_STATS) break
    }
    // The link that Kubernetes swaps when a mounted ConfigMap changes.
    const mounted = await realpath(join(path, '..data')).catch(() => '')
    const each = await Promise.all(names.sort().map(async (name) => `${name} ${await fileFacts(join(path, name))}`))
    return [factsOf(facts), mounted, ...each].join('\n')
  } catch (error) {
    return `${ERROR}${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`
  }
}

async function fileFacts(path: string): Promise<string> {
  try {
    return factsOf(await stat(path))
  } catch (error) {
    return `${ERROR}${(error as NodeJS.ErrnoException).code ?? 'unreadable'}`
  }
}

function factsOf({ ino, mtimeMs, size }: { ino: number; mtimeMs: number; size: number }): string {
  return `${ino} ${mtimeMs} ${size}`
}
