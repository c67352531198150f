import type { KubeClient } from '@thv/kube'

/** Requests that the API server has answered so far, by verb. */
export async function requestsByVerb(client: KubeClient): Promise<Map<string, number>> {
  const text = (await client.raw('GET', '/metrics', { accept: 'text/plain' })).text()
  const counts = new Map<string, number>()
  for (const line of text.split('\n')) {
    const match = /^apiserver_request_total\{([^}]*)\} (\S+)$/.exec(line)
    const labels = match?.[1] ?? ''
    const verb = /verb="([^"]*)"/.exec(labels)?.[1]
    const resource = /resource="([^"]*)"/.exec(labels)?.[1] ?? ''
    // Requests that the server and we ourselves send all the time.
    if (verb === undefined || resource === '' || IDLE_RESOURCES.has(resource)) continue
    counts.set(verb, (counts.get(verb) ?? 0) + Number(match?.[2]))
  }
  return counts
}

const IDLE_RESOURCES = new Set([
  'leases',
  'apiservices',
  'flowschemas',
  'prioritylevelconfigurations',
  'customresourcedefinitions',
  'ipaddresses',
])

/** Lists and watches are few and shared by all objects. */
const PER_OBJECT = ['GET', 'POST', 'PUT', 'PATCH', 'APPLY', 'DELETE']
const WRITES = ['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE']

export function difference(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  only: 'all' | 'writes' = 'all',
): number {
  const verbs = only === 'all' ? PER_OBJECT : WRITES
  return verbs.reduce((sum, verb) => sum + (after.get(verb) ?? 0) - (before.get(verb) ?? 0), 0)
}
