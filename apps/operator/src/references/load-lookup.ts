import { controllerOf } from '@thv/kube'
import { secretCache } from '../caches/built-in-caches.ts'
import type { Env } from '../environment.ts'
import type { ConfigMapContent, Lookup, SecretFacts } from './lookup.ts'
import { externalAuthConfigCache, groupCache, toolConfigCache } from './referenced-caches.ts'
import type { References } from './references.ts'
import { referencesOfExternalAuthConfig } from './references.ts'

/** Takes the snapshot that resolvers look at: from the caches, and the contents of the ConfigMaps named here or in an auth config. */
export async function loadLookup(
  { caches }: Pick<Env, 'caches'>,
  { namespace, references }: { namespace: string; references: References },
  signal: AbortSignal,
): Promise<Lookup> {
  const ofAuthConfigs = references.externalAuthConfigs.flatMap((name) => {
    const config = caches.of(externalAuthConfigCache).get({ namespace, name })
    return config === undefined ? [] : referencesOfExternalAuthConfig(config).configMaps
  })
  const contents = new Map<string, ConfigMapContent>()
  await Promise.all(
    [...new Set([...references.configMaps, ...ofAuthConfigs])].map(async (name) => {
      const content = await caches.configMapContent({ namespace, name }, signal)
      if (content !== undefined) contents.set(name, content)
    }),
  )
  return {
    configMap: (name) => contents.get(name),
    secret: (name) => secretFacts({ caches }, { namespace, name }),
    toolConfig: (name) => caches.of(toolConfigCache).get({ namespace, name }),
    externalAuthConfig: (name) => caches.of(externalAuthConfigCache).get({ namespace, name }),
    group: (name) => caches.of(groupCache).get({ namespace, name }),
  }
}

function secretFacts({ caches }: Pick<Env, 'caches'>, key: { namespace: string; name: string }): SecretFacts | undefined {
  const secret = caches.of(secretCache).get(key)
  if (secret === undefined) return undefined
  const { uid = '', resourceVersion = '' } = secret.metadata
  const { kind, name } = controllerOf(secret) ?? {}
  return { uid, resourceVersion, keys: new Set(Object.keys(secret.data ?? {})), controller: kind ? `${kind} ${name}` : '' }
}

/** Secrets that a workload depends on, those of its auth configs included. */
export function allSecrets(references: References, lookup: Lookup): string[] {
  const ofAuthConfigs = references.externalAuthConfigs.flatMap((name) => {
    const config = lookup.externalAuthConfig(name)
    return config === undefined ? [] : referencesOfExternalAuthConfig(config).secrets
  })
  return [...new Set([...references.secrets, ...ofAuthConfigs])].toSorted()
}
