import type { Clock } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { mountedPath } from '@thv/kernel/mounted-path'
import { watchFile } from '@thv/kernel/watch-file'
import type { KubeClient } from '@thv/kube'
import type { Log } from '@thv/telemetry/log'
import { CONFIG_KEY, configMapName } from '@thv/vmcpconfig/discovery/discovery-rules'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { readConfigText } from '../config/load-vmcp-config.ts'
import type { Env } from '../discover/forwarded-headers.ts'
import { GroupWatch } from '../discover/group-watch.ts'
import { type BackendFeed, FileFeed } from './backend-feed.ts'
import type { LiveServer } from './live-server.ts'

/** The cluster whose group is followed. */
export interface ClusterPlace {
  readonly client: KubeClient
  readonly namespace: string
}

export interface LiveSourceOptions {
  readonly config: VmcpConfig
  /** Path of the configuration; undefined where it never changes. */
  readonly file: string | undefined
  readonly cluster: ClusterPlace | undefined
  readonly env: Env
  readonly log: Log
  readonly clock: Clock
}

export interface LiveSource {
  readonly feed: BackendFeed
  /** Changes go to the server from now on. */
  start(server: LiveServer): void
  close(): Promise<void>
}

/**
 * With `discovered` the backends are the members of the group, and the configuration is that of the ConfigMap that the operator writes
 * (`VMCP_NAME`); otherwise both come from the file.
 */
export function openLiveSource(options: LiveSourceOptions): LiveSource {
  const { config, cluster } = options
  if (config.outgoingAuth.source === 'inline') return fileSource(options)
  if (cluster === undefined)
    throw new ThvError(
      'vmcp_config_invalid',
      'outgoingAuth.source: discovered needs a cluster; set KUBECONFIG or --kubeconfig, or run in a pod',
    )
  return groupSource(options, cluster)
}

function fileSource({ file, env, log, clock }: LiveSourceOptions): LiveSource {
  let server: LiveServer | undefined
  const reload = async () => {
    if (file === undefined) return server?.request()
    try {
      server?.offer(await readConfigText(file), file)
    } catch (error) {
      server?.unreadable(errorMessage(error))
    }
  }
  const onChange = () => {
    server?.request()
    void reload() // a text that could not be applied may work now
  }
  const feed = new FileFeed({ env, log, clock, onChange })
  const onError = (error: string) => log.warn('the configuration is watched less closely', { file, error })
  const watch = file === undefined ? undefined : watchFile({ path: mountedPath(file), clock, onChange: reload, onError })
  return {
    feed,
    start(started) {
      server = started
      watch?.trigger() // it may have changed while it was loaded
    },
    close: async () => await watch?.[Symbol.asyncDispose](),
  }
}

function groupSource(options: LiveSourceOptions, { client, namespace }: ClusterPlace): LiveSource {
  const { env, log, clock } = options
  let server: LiveServer | undefined
  const own = env['VMCP_NAME']
  const configMap = own ? configMapName(own) : undefined
  const onChange = () => {
    const text = watch.configValue(CONFIG_KEY)
    if (text !== undefined && text !== 'unknown') server?.offer(text, `ConfigMap ${configMap}`)
    server?.request()
  }
  const watch = new GroupWatch({ client, namespace, env, log, clock, configMap, onChange })
  const file = configMap === undefined ? fileSource(options) : undefined
  return {
    feed: { resolve: async (config) => watch.resolve(config), close: () => watch.close() },
    start(started) {
      server = started
      file?.start(started)
      started.request()
    },
    close: async () => await file?.close(),
  }
}
