import { hash } from 'node:crypto'
import { MAX_SHARDS, shardName, writeOrder } from '@thv/catalog/shards/shards'
import { jsonEqual } from '@thv/kernel/json'
import type { ConfigMap, Service, ServiceAccount } from '@thv/kube'
import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import { CONFIG_FILE } from '../config/registry-place.ts'
import { API_PORT, apiLabels, CONTENT_CHECKSUM, type DataComponent, dataLabels, podSelector, registryNames } from './names.ts'
import { RecentTexts } from './recent-texts.ts'

interface Place {
  readonly name: string
  readonly namespace: string
}

export function configMapOf({ name, namespace }: Place, text: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: registryNames(name).config,
      namespace,
      labels: apiLabels(name),
      annotations: { [CONTENT_CHECKSUM]: checksum(text) },
    },
    data: { [CONFIG_FILE]: text },
  }
}

/** Pods say themselves whether they want its token. */
export function accountOf({ name, namespace }: Place, { imagePullSecrets }: CanonicalMCPRegistrySpec): ServiceAccount {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: registryNames(name).account, namespace, labels: apiLabels(name) },
    automountServiceAccountToken: false,
    ...(imagePullSecrets.length > 0 && { imagePullSecrets }),
  }
}

export function serviceOf({ name, namespace }: Place): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: registryNames(name).service, namespace, labels: apiLabels(name) },
    spec: {
      type: 'ClusterIP',
      selector: podSelector(name),
      ports: [{ name: 'http', port: API_PORT, targetPort: API_PORT, protocol: 'TCP' }],
    },
  }
}

export interface DataMaps {
  /** In the order in which they must be written; all but the first maps may be written at the same time. */
  readonly wanted: readonly ConfigMap[]
  /** Names of shards that must not be there, to be removed after the others were written. */
  readonly unwanted: readonly string[]
}

export interface DataPlace extends Place {
  /** Of the first ConfigMap. */
  readonly first: string
  readonly component: DataComponent
  readonly annotations?: Readonly<Record<string, string>>
}

/** The ConfigMaps that hold registry data. */
export function dataMaps(place: DataPlace, texts: readonly (string | undefined)[]): DataMaps {
  const order = writeOrder(texts)
  return {
    wanted: order.flatMap((index) => {
      const text = texts[index]
      return text === undefined ? [] : [dataMap(place, shardName(place.first, index), text)]
    }),
    unwanted: Array.from({ length: MAX_SHARDS }, (_, index) => index)
      .filter((index) => texts[index] === undefined)
      .map((index) => shardName(place.first, index)),
  }
}

function dataMap(place: DataPlace, mapName: string, text: string): ConfigMap {
  const { name, namespace, component, annotations } = place
  const known = madeMaps.get(text)
  if (known !== undefined && known.mapName === mapName && jsonEqual(known.place, place)) return known.map
  const map: ConfigMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: mapName,
      namespace,
      labels: dataLabels(name, component),
      annotations: { ...annotations, [CONTENT_CHECKSUM]: checksum(text) },
    },
    data: { 'registry.json': text },
  }
  madeMaps.set(text, { place, mapName, map })
  return map
}

/** Of texts that are long, and mostly the same as last time: hashing them again would cost more than all the rest of a plan. */
const madeMaps = new RecentTexts<{ readonly place: DataPlace; readonly mapName: string; readonly map: ConfigMap }>(16 * 1024 * 1024)

function checksum(text: string): string {
  return hash('sha256', text)
}
