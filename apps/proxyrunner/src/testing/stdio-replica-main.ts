import { systemClock } from '@thv/kernel/clock'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { noAuth } from '@thv/kube/client/connection'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { createLogger } from '@thv/telemetry/log'
import { startRunner } from '../runner.ts'
import { createPodAttach } from '../runtime/kubernetes/pod-attach.ts'
import { createStdioAttacher } from '../runtime/kubernetes/stdio-attacher.ts'
import { readyPod } from '../runtime/testing/pods.ts'

/** Settings of one of several runners of a stdio server. */
export interface StdioReplica {
  readonly owner: string
  /** Of a server that speaks the protocol of attach. */
  readonly attachUrl: string
  readonly pods: readonly string[]
  readonly document: object
}

/** A runner in a process of its own, so that it can be killed. Prints its address. */
const { owner, attachUrl, pods, document } = JSON.parse(process.argv[2] ?? '{}') as StdioReplica
const base = { name: 'demo', transport: 'stdio', image: 'example.test/server:1', host: '127.0.0.1', telemetry_config: {} }
const read = readRunConfig({ ...base, ...document })
if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
const log = createLogger({ level: 'info' })
const lifecycle = createLifecycle()
const { telemetry_config: telemetry } = read.config
const { url } = await startRunner({
  config: { ...read.config, port: 0, ...(telemetry !== undefined && { telemetry_config: { ...telemetry, prometheus_port: 0 } }) },
  lifecycle,
  env: process.env,
  log,
  async runtime(state) {
    const attacher = createStdioAttacher({
      namespace: 'team-a',
      port: createPodAttach({ server: attachUrl, tls: {}, auth: noAuth }),
      workload: { pods: pods.map((name) => readyPod(name)), onChange: () => () => {} },
      log,
      clock: systemClock,
      leases: state?.leases(owner),
    })
    return {
      name: 'kubernetes',
      stdioCapacity: 1,
      startServer: () => Promise.reject(new Error('not a server with HTTP')),
      openStdio: (signal) => attacher.open(signal),
      close: () => attacher.close(),
    }
  },
})
process.stdout.write(`demo is served at ${url}\n`)
process.once('SIGTERM', () => void lifecycle.shutdown().then(() => process.exit(0)))
