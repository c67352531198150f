import { WireClient } from '@thv/gateway/testing/wire-client'
import { createLifecycle } from '@thv/kernel/lifecycle'
import type { Problem } from '@thv/runconfig/field'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { type RunnerOptions, startRunner } from '../runner.ts'

export interface RunningDocument extends AsyncDisposable {
  readonly client: WireClient
  readonly url: string
  readonly metricsUrl: string
  readonly log: CollectingLog
  /** Of the document. */
  readonly warnings: readonly Problem[]
}

export type RunDocumentOptions = Pick<RunnerOptions, 'providers'>

/** A whole runner from its document, in front of a remote server. */
export async function runDocument(
  remote: string,
  document: object,
  env: Record<string, string> = {},
  options: RunDocumentOptions = {},
): Promise<RunningDocument> {
  const read = readRunConfig({
    name: 'demo',
    transport: 'streamable-http',
    remote_url: remote,
    remote_policy: { allow_loopback: true },
    host: '127.0.0.1',
    telemetry_config: {},
    ...document,
  })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  const lifecycle = createLifecycle()
  const log = new CollectingLog()
  const runtime = () => Promise.reject(new Error('nothing to run'))
  const { telemetry_config: telemetry } = read.config
  const port = 'port' in document ? read.config.port : 0
  const config = {
    ...read.config,
    port,
    ...(telemetry !== undefined && { telemetry_config: { ...telemetry, prometheus_port: telemetry.prometheus_port ?? 0 } }),
  }
  const { url, metricsUrl } = await startRunner({ config, runtime, lifecycle, env, log: log as never, ...options })
  return {
    client: new WireClient(url),
    url,
    metricsUrl,
    log,
    warnings: read.warnings,
    [Symbol.asyncDispose]: async () => void (await lifecycle.shutdown()),
  }
}
