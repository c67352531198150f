import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Clock } from './clock.ts'
import { errorMessage } from './errors.ts'

export interface WatchOptions {
  readonly path: string
  readonly clock: Clock
  /** The file may be another than before. Called once at a time; what happens meanwhile leads to one more call. */
  readonly onChange: () => Promise<void>
  readonly onError: (message: string) => void
  readonly debounceMs?: number
  /** For file systems that report nothing, and for files that a symbolic link leads to. */
  readonly pollMs?: number
}

export interface FileWatch extends AsyncDisposable {
  /** As if the file had changed. */
  trigger(): void
}

/**
 * Watches the folder, not the file: editors and Kubernetes put another file (or link) in its place. A file that comes and goes is
 * the same to it as one that changes.
 */
export function watchFile(options: WatchOptions): FileWatch {
  const { clock, onChange, onError, debounceMs = 200, pollMs = 5_000 } = options
  const path = resolve(options.path)
  const closed = new AbortController()
  let timer: { cancel(): void } | undefined
  let running: Promise<void> | undefined
  let again = false
  let seen: string | undefined

  const run = async () => {
    do {
      again = false
      seen = await fingerprint(path)
      await onChange().catch((error: unknown) => onError(errorMessage(error)))
    } while (again && !closed.signal.aborted)
    running = undefined
  }
  const settle = () => {
    if (running) again = true
    else running = run()
  }
  const soon = () => {
    timer?.cancel()
    if (!closed.signal.aborted) timer = clock.setTimer(debounceMs, settle)
  }
  const folder = watchFolder(dirname(path), soon, onError)
  const polling = poll()

  async function poll(): Promise<void> {
    seen = await fingerprint(path)
    while (!closed.signal.aborted) {
      await clock.sleep(pollMs, closed.signal).catch(() => undefined) // closed: the loop sees it
      if (!closed.signal.aborted && (await fingerprint(path)) !== seen) soon()
    }
  }

  return {
    trigger: () => settle(),
    async [Symbol.asyncDispose]() {
      closed.abort()
      timer?.cancel()
      folder?.close()
      await Promise.all([running, polling])
    },
  }
}

function watchFolder(folder: string, onEvent: () => void, onError: (message: string) => void): FSWatcher | undefined {
  const failed = (error: unknown) =>
    onError(`the folder of the file cannot be watched, so the file is looked at every few seconds: ${errorMessage(error)}`)
  try {
    return watch(folder, { persistent: false }, onEvent).on('error', failed)
  } catch (error) {
    failed(error)
    return undefined
  }
}

async function fingerprint(path: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(path)
    return `${ino} ${mtimeMs} ${size}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable'
  }
}
