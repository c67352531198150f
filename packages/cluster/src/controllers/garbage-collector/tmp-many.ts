import { configMaps, secrets } from '@thv/kube'
import { startEmbeddedPlane } from '../scenarios/testing/embedded-plane.ts'
import { garbageCollector } from './garbage-collector.ts'

const plane = await startEmbeddedPlane([garbageCollector])
const { client } = plane.env
const namespace = 'default'
const policy = (process.argv[2] ?? 'Background') as 'Background'
let t = performance.now()
const lap = (what: string) => { console.log(what, Math.round(performance.now() - t), Object.fromEntries(plane.requests)); t = performance.now() }
const { metadata } = await client.create(configMaps, { metadata: { namespace, name: 'owner' } })
const names = Array.from({ length: 1000 }, (_, i) => `d-${i}`)
await Promise.all(Array.from({ length: 10 }, async () => {
  for (let name = names.pop(); name; name = names.pop())
    await client.create(secrets, { metadata: { namespace, name, ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: metadata.uid ?? '', blockOwnerDeletion: true }] } })
}))
lap('created')
plane.requests.clear()
await client.delete(configMaps, { namespace, name: 'owner' }, { propagationPolicy: policy })
for (;;) {
  const n = (await client.list(secrets, { namespace, limit: 1 })).items.length
  if (n === 0) break
  await new Promise((r) => setTimeout(r, 50))
}
lap('deleted')
await plane[Symbol.asyncDispose]()
console.log(plane.errors.slice(0, 3), plane.errors.length)
