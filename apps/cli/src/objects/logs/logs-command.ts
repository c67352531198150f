import { systemClock } from '@thv/kernel/clock'
import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import type { Container, ContainerStatus, Deployment, Pod } from '@thv/kube/objects/builtin-kinds'
import { parseLabelSelector } from '@thv/kube/objects/label-selector'
import { pods as podType } from '@thv/kube/objects/resource-types'
import { podLogLines } from '@thv/kube/streams/pod-logs'
import { loadKinds } from '../../cluster/kind-catalog.ts'
import { type ClusterFlags, serverMessage, withCluster } from '../../cluster/open-cluster.ts'
import { parseTargets } from '../../cluster/targets.ts'
import type { ProgramEnv } from '../../program.ts'
import { createOrderedPrinter, createStampReader, mergedLines, type TimedLine } from './merged-lines.ts'
import { readableLine } from './readable-line.ts'

export interface LogsOptions extends ClusterFlags {
  readonly follow?: boolean
  readonly tail?: string
  readonly container?: string
  readonly previous?: boolean
  readonly timestamps?: boolean
  readonly raw?: boolean
}

/** All pods of an MCP server carry its name: those of its proxy, and those of the server itself. */
const NAME_LABEL = 'toolhive-name'
const LOOK_AGAIN_MS = 1_000

interface Logs {
  readonly client: KubeClient
  readonly namespace: string
  readonly options: LogsOptions
  readonly tailLines: number | undefined
  readonly env: ProgramEnv
  /** Lists the pods that are meant, now. */
  find(): Promise<Pod[]>
}

/** thv logs NAME | KIND/NAME: of an MCP server the proxy's pods and its own, each line with where it comes from. */
export async function runLogs(word: string, options: LogsOptions, env: ProgramEnv): Promise<void> {
  const tailLines = tailOf(options.tail)
  await withCluster(options, env, async ({ client, namespace }) => {
    const find = await finder(word, { client, namespace, env })
    const logs = { client, namespace, options, tailLines, env, find }
    const found = await find()
    if (found.length === 0) throw new ThvError('usage', nothingThere(word, namespace))
    if (options.follow) await followAll(logs)
    else await printAll(found, logs)
  })
}

function nothingThere(word: string, namespace: string): string {
  if (word.includes('/')) return `${word} has no pods in namespace ${namespace}; see "thv describe ${word}"`
  return `no MCP server or pod ${JSON.stringify(word)} in namespace ${namespace}; "thv ls -A" lists the servers`
}

async function finder(word: string, { client, namespace, env }: Pick<Logs, 'client' | 'namespace' | 'env'>): Promise<() => Promise<Pod[]>> {
  const listed = async (labelSelector: string) =>
    (await client.listAll(podType, { namespace, labelSelector, signal: env.signal })).items.sort(byName)
  if (!word.includes('/')) {
    const isServer = (await listed(`${NAME_LABEL}=${word}`)).length > 0
    const pod = isServer ? undefined : await client.tryGet(podType, { namespace, name: word }, { signal: env.signal })
    return pod ? async () => [await client.get(podType, { namespace, name: word })] : () => listed(`${NAME_LABEL}=${word}`)
  }
  const [target] = parseTargets([word], await loadKinds(client, env.signal))
  const [name = ''] = target?.names ?? []
  const kind = target?.resource.type.kind
  if (target === undefined || kind === 'Pod') return async () => [await client.get(podType, { namespace, name }, { signal: env.signal })]
  const object = await client.get(target.resource.type, { namespace, name }, { signal: env.signal })
  const selector = (object as Deployment).spec?.selector
  if (kind === 'Deployment' || kind === 'StatefulSet' || kind === 'ReplicaSet')
    return () => listed(parseLabelSelector((selector ?? {}) as Parameters<typeof parseLabelSelector>[0]).text)
  return () => listed(`${NAME_LABEL}=${name}`)
}

async function printAll(pods: readonly Pod[], logs: Logs): Promise<void> {
  const streams = pods.flatMap((pod) => containersOf(pod, logs).map((container) => ({ pod, container })))
  let failed = 0
  async function* linesOfOne({ pod, container }: { pod: Pod; container: string }): AsyncGenerator<TimedLine> {
    const prefix = streams.length > 1 ? prefixOf(pod, container) : ''
    try {
      yield* linesOf(pod, { container, logs, prefix })
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error
      failed++
      logs.env.err(`${prefixOf(pod, container)}${serverMessage(error)}\n`)
    }
  }
  const all = streams.map(linesOfOne)
  // As they are: one after the other.
  const groups = logs.options.raw ? all.map((each) => [each]) : [all]
  for (const group of groups) for await (const { text } of mergedLines(group)) logs.env.out(text)
  if (failed === streams.length) throw new ThvError('command_incomplete', 'no logs to show')
}

/** Until Ctrl-C, or until nothing of it is left. Containers that start again, and pods that come later, are followed too. */
async function followAll(logs: Logs): Promise<void> {
  const { env } = logs
  const printer = createOrderedPrinter(env.out)
  const seen = new Set<string>()
  const open = new Set<Promise<void>>()
  let isFirst = true
  for (;;) {
    const pods = await logs.find().catch((error: unknown) => {
      if (error instanceof KubeApiError && error.status === 404) return []
      throw error
    })
    if (pods.length === 0 && open.size === 0) return
    for (const pod of pods) {
      for (const container of containersOf(pod, logs)) {
        const status = statusOf(pod, container)
        const key = `${pod.metadata.uid} ${container} ${status?.restartCount ?? 0}`
        if (seen.has(key) || (status?.state?.running === undefined && status?.state?.terminated === undefined)) continue
        seen.add(key)
        // Containers that ran before this command began are shown from their tail; later ones are shown whole.
        const stream = followOne(pod, { container, logs: isFirst ? logs : { ...logs, tailLines: undefined }, printer }).finally(() =>
          open.delete(stream),
        )
        open.add(stream)
      }
    }
    isFirst = false
    if (await interrupted(env)) return printer.flush()
    if (pods.length > 0 && open.size === 0 && pods.every(isOver)) return
  }
}

async function interrupted(env: ProgramEnv): Promise<boolean> {
  try {
    await systemClock.sleep(LOOK_AGAIN_MS, env.signal)
    return false
  } catch (error) {
    if (env.signal?.aborted) return true
    throw error
  }
}

interface OneLog {
  readonly container: string
  readonly logs: Logs
}

async function followOne(
  pod: Pod,
  { container, logs, printer }: OneLog & { printer: ReturnType<typeof createOrderedPrinter> },
): Promise<void> {
  const prefix = prefixOf(pod, container)
  try {
    for await (const line of linesOf(pod, { container, logs, prefix })) {
      if (logs.options.raw) logs.env.out(line.text)
      else printer.add(line)
    }
  } catch (error) {
    if (logs.env.signal?.aborted) return
    if (!isThvError(error)) throw error
    logs.env.err(`${prefix}${error instanceof KubeApiError ? serverMessage(error) : errorMessage(error)}\n`)
  } finally {
    printer.flush()
  }
}

/** A JSON-RPC message that is longer is not read, and not shown. */
const MAX_READABLE_BYTES = 8 << 20

/** The lines as they are printed, with the time of each. */
async function* linesOf(pod: Pod, { container, logs, prefix }: OneLog & { prefix: string }): AsyncGenerator<TimedLine> {
  const { client, namespace, options, tailLines, env } = logs
  const { follow, previous, timestamps = false, raw = false } = options
  const query = { namespace, pod: pod.metadata.name, container, follow, previous, tailLines, signal: env.signal }
  const stamped = createStampReader()
  if (raw) for await (const line of podLogLines(client, { ...query, timestamps })) yield { time: 0, text: `${prefix}${line}\n` }
  else
    for await (const line of podLogLines(client, { ...query, timestamps: true, maxLineBytes: MAX_READABLE_BYTES })) {
      const { time, text } = stamped(line)
      yield { time, text: `${prefix}${timestamps ? `${new Date(time).toISOString()} ` : ''}${readableLine(text)}\n` }
    }
}

function containersOf(pod: Pod, { options }: Logs): string[] {
  const all = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map(({ name }: Container) => name)
  const { container } = options
  if (container === undefined) return (pod.spec?.containers ?? []).map(({ name }) => name)
  if (!all.includes(container))
    throw new ThvError('usage', `pod ${pod.metadata.name} has no container ${JSON.stringify(container)}: it has ${all.join(', ')}`)
  return [container]
}

function statusOf({ status }: Pod, container: string): ContainerStatus | undefined {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].find(({ name }) => name === container)
}

function isOver({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

function prefixOf(pod: Pod, container: string): string {
  return `[${pod.metadata.name}/${container}] `
}

function byName(a: Pod, b: Pod): number {
  return a.metadata.name < b.metadata.name ? -1 : 1
}

function tailOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '-1') return undefined
  if (!/^\d{1,9}$/.test(text)) throw new ThvError('usage', `--tail must be a number of lines, not ${JSON.stringify(text)}`)
  return Number(text)
}
