import { configHash } from '@thv/kernel/config-hash'
import type { Lookup } from '../../references/lookup.ts'

/* Annotations that the operator puts on pod templates and Deployments. */
export const WorkloadAnnotation = {
  runConfigChecksum: 'toolhive.stacklok.dev/runconfig-checksum',
  mcpServerGeneration: 'toolhive.stacklok.dev/mcpserver-generation',
  secretsHash: 'toolhive.stacklok.dev/secrets-hash',
  podTemplateSpecHash: 'toolhive.stacklok.io/podtemplatespec-hash',
} as const

/**
 * Changes when one of the Secrets does, so that pods which were given the old content are replaced. Undefined without Secrets. Only
 * names and versions go in, never content.
 */
export function secretsHash(names: Iterable<string>, lookup: Pick<Lookup, 'secret'>): string | undefined {
  const known = [...new Set(names)].sort().map((name) => {
    const secret = lookup.secret(name)
    return [name, secret?.uid ?? '', secret?.resourceVersion ?? '']
  })
  return known.length === 0 ? undefined : configHash(known)
}
