import type { Clock } from '@thv/kernel/clock'
import { mountedPath } from '@thv/kernel/mounted-path'
import { type FileWatch, watchFile } from '@thv/kernel/watch-file'
import type { Log } from '@thv/telemetry/log'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { type Discovered, shadowed } from '../discover/discovered-backends.ts'
import type { Env } from '../discover/forwarded-headers.ts'
import type { ResolvedBackend } from '../discover/resolved-backend.ts'
import { staticBackends } from '../discover/static-backends.ts'

/** Where the backends of a configuration come from. */
export interface BackendFeed {
  /** Undefined: not known yet. Rejects with `vmcp_config_invalid` when the configuration cannot be applied. */
  resolve(config: VmcpConfig): Promise<Discovered | undefined>
  close(): Promise<void>
}

export interface FileFeedOptions {
  readonly env: Env
  readonly log: Log
  readonly clock: Clock
  /** A CA bundle has changed. */
  onChange(): void
}

/** The backends of the file itself. Their CA bundles are watched, so that a new one needs no other start. */
export class FileFeed implements BackendFeed {
  readonly #options: FileFeedOptions
  readonly #watches = new Map<string, FileWatch>()

  constructor(options: FileFeedOptions) {
    this.#options = options
  }

  async resolve(config: VmcpConfig): Promise<Discovered> {
    const { env, log } = this.#options
    this.#watch(new Set(config.backends.flatMap(({ caBundlePath }) => caBundlePath ?? [])))
    return fixedBackends(await staticBackends(config, env, log), config)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watches.values()].map((watch) => watch[Symbol.asyncDispose]()))
  }

  #watch(paths: ReadonlySet<string>): void {
    const { clock, log, onChange } = this.#options
    for (const [path, watch] of this.#watches) {
      if (paths.has(path)) continue
      this.#watches.delete(path)
      void watch[Symbol.asyncDispose]()
    }
    for (const path of paths) {
      if (this.#watches.has(path)) continue
      const onError = (error: string) => log.warn('a CA bundle is watched less closely', { path, error })
      this.#watches.set(path, watchFile({ path: mountedPath(path), clock, onError, onChange: async () => onChange() }))
    }
  }
}

/** Backends of a file, with what is worth a look. */
export function fixedBackends(backends: readonly ResolvedBackend[], config: VmcpConfig): Discovered {
  const warnings = backends.flatMap((backend) => shadowed(backend, config).map((problem) => ({ kind: 'backend', ...problem })))
  return { backends, leftOut: [], warnings, ready: new Set() }
}
