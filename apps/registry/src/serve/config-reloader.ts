import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import { type FileWatch, watchFile } from '@thv/kernel/watch-file'
import type { Logger } from '@thv/telemetry/log'
import { problemLine } from '../config/config-problem.ts'
import { type ReadOptions, readConfigFile } from '../config/read-config.ts'
import type { RegistryConfig } from '../config/registry-config.ts'

export interface ReloaderOptions {
  readonly path: string
  /** The configuration at the start. */
  readonly text: string
  readonly read: ReadOptions
  /** The configuration in force, and how another replaces it. */
  readonly served: { readonly config: RegistryConfig; apply(config: RegistryConfig): Promise<void> }
  readonly clock: Clock
  readonly log: Logger
  readonly debounceMs?: number
  readonly pollMs?: number
}

/** Takes over the file whenever it changes. One that cannot be used is refused with its problems, and the old configuration stays. */
export function startReloader(options: ReloaderOptions): FileWatch {
  const { path, served, clock, log, debounceMs, pollMs } = options
  let text: string | undefined = options.text
  let forced = false
  let refused: readonly string[] | undefined
  let retry: { cancel(): void } | undefined
  const backoff = createBackoff({ baseMs: 2_000, maxMs: 300_000 })

  async function reload(): Promise<void> {
    const again = forced
    forced = false
    retry?.cancel()
    const result = await readConfigFile(path, options.read)
    if (!again && result.text !== undefined && result.text === text) return
    text = result.text
    if (!result.ok) {
      const problems = result.problems.map((problem) => problemLine(path, problem))
      // Other files of the folder change too, the log maybe: a missing file is logged once.
      const isKnown = !again && jsonEqual(problems, refused)
      refused = problems
      if (isKnown) return
      log.error('the changed configuration is refused; the old one stays in force', { problems })
      return
    }
    refused = undefined
    for (const warning of result.warnings) log.warn(warning)
    if (!jsonEqual(result.config.storage, served.config.storage)) {
      log.error('the changed configuration is refused: another store needs a restart; the old one stays in force', { file: path })
      return
    }
    try {
      await served.apply(result.config)
      backoff.reset()
      log.info('the changed configuration is in force', { file: path, registries: result.config.registries.map(({ name }) => name) })
    } catch (error) {
      const retryMs = Math.round(backoff.next())
      log.error('the changed configuration cannot be applied; the old one stays in force meanwhile', {
        error: errorMessage(error),
        retryMs,
      })
      retry = clock.setTimer(retryMs, trigger)
    }
  }

  const watch = watchFile({
    path,
    clock,
    onChange: reload,
    onError: (message) => log.warn(message),
    ...(debounceMs !== undefined && { debounceMs }),
    ...(pollMs !== undefined && { pollMs }),
  })
  watch.trigger() // it may have changed since it was read

  function trigger(): void {
    forced = true
    watch.trigger()
  }
  return {
    trigger,
    async [Symbol.asyncDispose]() {
      retry?.cancel()
      await watch[Symbol.asyncDispose]()
      retry?.cancel()
    },
  }
}
