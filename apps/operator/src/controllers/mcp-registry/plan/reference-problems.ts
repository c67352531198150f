import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import { parseCaBundle } from '../../../proxy/resolve/ca-bundle.ts'
import { DEFAULT_CA_KEY } from '../config/auth-config.ts'

/** Content of the objects that a spec names; undefined for one that is not there. */
export interface ReferencedObjects {
  configMap(name: string): Readonly<Record<string, string>> | undefined
  /** Never the values. */
  secretKeys(name: string): readonly string[] | undefined
}

/** Problems of objects that are there: a key that is missing, certificates that are none. Never quotes their content. Pure. */
export function referenceProblems(spec: CanonicalMCPRegistrySpec, objects: ReferencedObjects, now: number): string[] {
  return [...new Set([...certificateProblems(spec, objects, now), ...secretProblems(spec, objects)])]
}

function certificateProblems({ authConfig }: CanonicalMCPRegistrySpec, { configMap }: ReferencedObjects, now: number): string[] {
  return (authConfig.oauth?.providers ?? []).flatMap(({ caCertRef }) => {
    const data = caCertRef && configMap(caCertRef.name)
    if (caCertRef === undefined || data === undefined) return []
    const { name, key = DEFAULT_CA_KEY, optional } = caCertRef
    const pem = Object.hasOwn(data, key) ? data[key] : undefined
    if (pem === undefined) return optional ? [] : [`ConfigMap ${name} has no key ${key}`]
    const { problem } = parseCaBundle(pem, now)
    return problem === undefined ? [] : [`key ${key} of ConfigMap ${name} is not a CA bundle: ${problem}`]
  })
}

function secretProblems(spec: CanonicalMCPRegistrySpec, { secretKeys }: ReferencedObjects): string[] {
  const { oauth, writeTokenSecretRef } = spec.authConfig
  const { databaseConfig: database, pgpassSecretRef } = spec
  const sources = 'registries' in spec ? spec.registries : 'source' in spec ? [spec.source] : []
  const refs = [
    writeTokenSecretRef,
    pgpassSecretRef,
    database?.dbAppUserPasswordSecretRef,
    database?.dbMigrationUserPasswordSecretRef,
    ...(oauth?.providers ?? []).flatMap(({ clientSecretRef, authTokenRef }) => [clientSecretRef, authTokenRef]),
    ...sources.map(({ git }) => git?.auth?.passwordSecretRef),
  ]
  return refs.flatMap((ref) => {
    const keys = ref && secretKeys(ref.name)
    return ref === undefined || keys === undefined || keys.includes(ref.key) ? [] : [`Secret ${ref.name} has no key ${ref.key}`]
  })
}
