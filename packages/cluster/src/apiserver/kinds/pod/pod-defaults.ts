import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { quantityOf, quantityText, roundedToMilli } from '@thv/kube-schema/values/quantity'
import { isObject, textAt } from '../../objects/served-kind.ts'
import { pullPolicyOf } from './image-name.ts'
import { tidied } from './tidy.ts'
import { changed, changedItems, flagAt, objectAt, objectsAt, withDefaults } from './validation/fields.ts'

/** A pod as the client means it. */
export function podDefaults(pod: JsonObject): JsonObject {
  const spec = withPodResources(podSpecDefaults(tidied(objectAt(pod, 'spec') ?? {}), { ofPod: true }))
  return { ...pod, spec: withDefaults(hostNetworkPorts(spec), { enableServiceLinks: true }) }
}

/** Of a template that is tidy already. */
export function templateDefaults(template: JsonObject | undefined): JsonObject {
  const { metadata, spec } = template ?? {}
  return {
    metadata: isObject(metadata) ? metadata : {},
    spec: podSpecDefaults(isObject(spec) ? spec : {}),
  }
}

/** Of a spec that is tidy already. */
function podSpecDefaults(spec: JsonObject, { ofPod = false } = {}): JsonObject {
  const account = textAt(spec, 'serviceAccountName') || textAt(spec, 'serviceAccount')
  const complete = withDefaults(
    { ...spec, ...(account === '' ? {} : { serviceAccountName: account, serviceAccount: account }) },
    {
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      schedulerName: 'default-scheduler',
    },
  )
  const container = (one: JsonObject) => containerDefaults(one, ofPod)
  let result = changedItems(changedItems(complete, 'containers', container), 'initContainers', container)
  result = changedItems(result, 'ephemeralContainers', (one) => containerDefaults(one, false))
  result = changedItems(result, 'volumes', volumeDefaults)
  result = changed(result, 'resources', resourceDefaults)
  return changed(result, 'overhead', resourceList)
}

function containerDefaults(container: JsonObject, requestsFromLimits: boolean): JsonObject {
  let result = withDefaults(container, {
    resources: {},
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: pullPolicyOf(textAt(container, 'image')),
  })
  result = changed(result, 'resources', (resources) => {
    const rounded = resourceDefaults(resources)
    const limits = objectAt(rounded, 'limits')
    if (!requestsFromLimits || limits === undefined) return rounded
    return { ...rounded, requests: { ...limits, ...objectAt(rounded, 'requests') } }
  })
  result = changedItems(result, 'ports', (port) => withDefaults(port, { protocol: 'TCP' }))
  result = changedItems(result, 'env', envDefaults)
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) result = changed(result, probe, probeDefaults)
  return changed(result, 'lifecycle', (lifecycle) => changed(changed(lifecycle, 'postStart', handlerDefaults), 'preStop', handlerDefaults))
}

function resourceDefaults(resources: JsonObject): JsonObject {
  return changed(changed(resources, 'limits', resourceList), 'requests', resourceList)
}

function resourceList(list: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(list).map(([name, value]) => [name, quantityText(roundedToMilli(quantityOf(value)))]))
}

function envDefaults(variable: JsonObject): JsonObject {
  return changed(variable, 'valueFrom', referenceDefaults)
}

/** Fields that a variable or a file of the downward API may refer to. */
function referenceDefaults(source: JsonObject): JsonObject {
  const fields = changed(source, 'fieldRef', (ref) => withDefaults(ref, { apiVersion: 'v1' }))
  return changed(fields, 'resourceFieldRef', (ref) => ({ ...ref, divisor: quantityText(quantityOf(ref['divisor'])) }))
}

function probeDefaults(probe: JsonObject): JsonObject {
  const numbers = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 }
  return handlerDefaults(withDefaults(probe, numbers))
}

function handlerDefaults(handler: JsonObject): JsonObject {
  const http = changed(handler, 'httpGet', (get) => withDefaults({ ...get, path: textAt(get, 'path') || '/' }, { scheme: 'HTTP' }))
  return changed(http, 'grpc', (grpc) => withDefaults(grpc, { service: '' }))
}

const DEFAULT_MODE = 0o644

function volumeDefaults(volume: JsonObject): JsonObject {
  const mode = (source: JsonObject) => withDefaults(source, { defaultMode: DEFAULT_MODE })
  const files = (source: JsonObject) => changedItems(source, 'items', referenceDefaults)
  let result: JsonObject = Object.keys(volume).some((name) => name !== 'name') ? volume : { ...volume, emptyDir: {} }
  result = changed(result, 'secret', mode)
  result = changed(result, 'configMap', mode)
  result = changed(result, 'downwardAPI', (source) => mode(files(source)))
  result = changed(result, 'projected', (source) =>
    mode(
      changedItems(source, 'sources', (one) =>
        changed(changed(one, 'downwardAPI', files), 'serviceAccountToken', (token) => withDefaults(token, { expirationSeconds: 3_600 })),
      ),
    ),
  )
  result = changed(result, 'hostPath', (source) => withDefaults(source, { type: '' }))
  result = changed(result, 'emptyDir', (source) =>
    source['sizeLimit'] === undefined ? source : { ...source, sizeLimit: quantityText(quantityOf(source['sizeLimit'])) },
  )
  result = changed(result, 'image', (source) => withDefaults(source, { pullPolicy: pullPolicyOf(textAt(source, 'reference')) }))
  return changed(result, 'ephemeral', (source) =>
    changed(source, 'volumeClaimTemplate', (claim) =>
      withDefaults({ ...claim, spec: claimSpecDefaults(objectAt(claim, 'spec') ?? {}) }, { metadata: {} }),
    ),
  )
}

export function claimSpecDefaults(spec: JsonObject): JsonObject {
  return changed(withDefaults(spec, { resources: {}, volumeMode: 'Filesystem' }), 'resources', resourceDefaults)
}

/** A container in the network of its host is where its port says. */
function hostNetworkPorts(spec: JsonObject): JsonObject {
  if (flagAt(spec, 'hostNetwork') !== true) return spec
  const port = (one: JsonObject) => withDefaults(one, { hostPort: one['containerPort'] ?? 0 })
  const container = (one: JsonObject) => changedItems(one, 'ports', port)
  return changedItems(changedItems(spec, 'containers', container), 'initContainers', container)
}

/** Requests of a whole pod that sets limits only: the sum of its containers, or that limit. */
function withPodResources(spec: JsonObject): JsonObject {
  const known = Object.entries(objectAt(spec, 'resources', 'limits') ?? {}).filter(([name]) => /^(cpu$|memory$|hugepages-)/.test(name))
  if (known.length === 0) return spec
  const limits = Object.fromEntries(known)
  const requests: Record<string, string> = {}
  for (const name of ['cpu', 'memory']) {
    const asked = objectsAt(spec, 'containers').map((one) => textAt(one, 'resources', 'requests', name))
    if (!asked.some((text) => text !== '')) continue
    const nanos = asked.reduce((sum, text) => sum + quantityOf(text === '' ? '0' : text).nanos, 0n)
    requests[name] = quantityText({ nanos, form: quantityOf(asked.find((text) => text !== '')).form })
  }
  return changed(spec, 'resources', (resources) => ({
    ...resources,
    requests: { ...limits, ...requests, ...objectAt(resources, 'requests') },
  }))
}
