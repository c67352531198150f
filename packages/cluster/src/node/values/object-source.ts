import type { KubeClient } from '@thv/kube/client/client'
import type { ConfigMap, Secret } from '@thv/kube/objects/builtin-kinds'
import { configMaps, secrets } from '@thv/kube/objects/resource-types'

/** The data of ConfigMaps and Secrets of one namespace. Asks the server each time: a pod must not start with what was there before. */
export interface ObjectSource {
  configMap(name: string): Promise<ReadonlyMap<string, Uint8Array> | undefined>
  secret(name: string): Promise<ReadonlyMap<string, Uint8Array> | undefined>
}

export function objectSource(client: KubeClient, namespace: string, signal: AbortSignal): ObjectSource {
  const known = new Map<string, Promise<ReadonlyMap<string, Uint8Array> | undefined>>()
  const once = (key: string, read: () => Promise<ReadonlyMap<string, Uint8Array> | undefined>) => {
    const running = known.get(key) ?? read()
    known.set(key, running)
    return running
  }
  return {
    configMap: (name) => once(`c/${name}`, async () => mapData(await client.tryGet(configMaps, { namespace, name }, { signal }))),
    secret: (name) => once(`s/${name}`, async () => secretData(await client.tryGet(secrets, { namespace, name }, { signal }))),
  }
}

function mapData(map: ConfigMap | undefined): Map<string, Uint8Array> | undefined {
  if (map === undefined) return undefined
  const text = Object.entries(map.data ?? {}).map(([key, value]): [string, Uint8Array] => [key, Buffer.from(value)])
  return new Map([...text, ...decoded(map.binaryData)])
}

function secretData(secret: Secret | undefined): Map<string, Uint8Array> | undefined {
  return secret === undefined ? undefined : new Map(decoded(secret.data))
}

function decoded(data: Record<string, string> = {}): [string, Uint8Array][] {
  return Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')])
}
