import { errorMessage } from '@thv/kernel/errors'
import { events, type KubeClient, type Pod, pods } from '@thv/kube'
import { podLogLines } from '@thv/kube/streams/pod-logs'
import { REMOTE, SERVER, TOOLS } from './world.ts'

const LINES = 25

/** Diagnostics of a story that failed. */
export async function report(client: KubeClient, namespace: string): Promise<string> {
  const parts: string[] = []
  for (const type of [SERVER, REMOTE, TOOLS]) {
    for (const { metadata, status } of (await client.list(type, { namespace })).items)
      parts.push(`── ${type.kind} ${metadata.name} (generation ${metadata.generation}): ${JSON.stringify(status, undefined, 1)}`)
  }
  for (const { type, reason, note, regarding } of (await client.list(events, { namespace })).items) {
    if (type === 'Warning') parts.push(`── Warning ${reason} of ${regarding?.kind} ${regarding?.name}: ${note}`)
  }
  for (const pod of (await client.list(pods, { namespace })).items) {
    const { phase, containerStatuses, conditions } = pod.status ?? {}
    const isGoing = pod.metadata.deletionTimestamp === undefined ? '' : ', going'
    parts.push(`── pod ${pod.metadata.name} ${phase}${isGoing} ${JSON.stringify(containerStatuses)}`)
    if (containerStatuses === undefined) parts.push(JSON.stringify(conditions))
    for (const { name } of pod.spec?.containers ?? []) parts.push(await lastLines(client, pod, name))
  }
  return parts.join('\n')
}

async function lastLines(client: KubeClient, { metadata }: Pod, container: string): Promise<string> {
  const lines: string[] = []
  try {
    const options = { namespace: metadata.namespace ?? '', pod: metadata.name, container, tailLines: LINES, timeoutMs: 5_000 }
    for await (const line of podLogLines(client, options)) lines.push(`   ${line}`)
  } catch (error) {
    lines.push(`   no log: ${errorMessage(error)}`)
  }
  return lines.join('\n')
}
