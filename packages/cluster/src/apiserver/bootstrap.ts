import { randomUUID } from 'node:crypto'
import { type ApiEnv, timestamp } from './http/request-context.ts'
import { namespaceRules } from './objects/kind-rules.ts'

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** The namespaces that every cluster has from its start. */
export function ensureNamespaces({ store, clock }: ApiEnv): void {
  for (const name of NAMESPACES) {
    if (store.get('namespaces', name)) continue
    const body = { metadata: { name, uid: randomUUID(), creationTimestamp: timestamp(clock) }, spec: {} }
    const labelled = namespaceRules.applyDefaults?.(body) ?? body
    store.create('namespaces', name, namespaceRules.prepareCreate?.(labelled) ?? labelled)
  }
}
