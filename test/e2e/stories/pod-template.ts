import { type Container, configMaps, pods, secrets, services } from '@thv/kube'
import { request } from '@thv/testkit/cluster/http-request'
import { connect, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER } from './world.ts'

/** Serves what it sees of its surroundings. */
const SIDECAR = `const fs = require('node:fs')
const read = (path) => { try { return fs.readFileSync(path, 'utf8') } catch (error) { return error.code } }
let root = 'writable'
try { fs.writeFileSync('/x', '') } catch (error) { root = error.code }
fs.writeFileSync('/shared/from-sidecar', 'written')
require('node:http').createServer((_, response) => response.end(JSON.stringify({ uid: process.getuid(), root, motd: read('/etc/motd/motd'),
  prepared: read('/shared/prepared'), own: read('/shared/from-sidecar'), secret: process.env.KEY }))).listen(9999)`

export const podTemplate: Story = {
  title: 'podTemplateSpec: init container, sidecar and volumes really run where pod security is restricted',
  needs: ['containers'],
  proves: ['002-214', '002-237', '002-238', '002-240', '002-241', '002-246'],
  async tell(world) {
    const { client, at, images } = world
    const [node] = (await client.raw('GET', '/api/v1/nodes').then((answer) => answer.json() as { items: { metadata: { name: string } }[] }))
      .items
    const label = { disktype: 'ssd' }
    await client.raw('PATCH', `/api/v1/nodes/${node?.metadata.name}`, {
      body: { metadata: { labels: label } },
      contentType: 'application/merge-patch+json',
    })
    await client.create(configMaps, { metadata: at('motd'), data: { motd: 'grüße' } })
    await client.create(secrets, { metadata: at('key'), stringData: { key: 'from a Secret' } })
    const runtimeClass = { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'story' }, handler: 'runc' }
    const byStory = { query: { fieldManager: 'story', force: 'true' }, contentType: 'application/apply-patch+yaml' }
    await client.raw('PATCH', '/apis/node.k8s.io/v1/runtimeclasses/story', { body: runtimeClass, ...byStory })
    const matchExpressions = [{ key: 'disktype', operator: 'In', values: ['ssd'] }]
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } } }
    const shared = { name: 'shared', mountPath: '/shared' }
    const key = { name: 'KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'key' } } }
    await world.create(SERVER, 'rich', {
      image: images.fixture,
      args: ['--name', 'rich'],
      secrets: [{ name: 'key', key: 'key', targetEnvName: 'API_KEY' }],
      resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '256Mi' } },
      podTemplateSpec: {
        metadata: { annotations: { 'example.com/owner': 'weather' } },
        spec: {
          nodeSelector: label,
          tolerations: [{ key: 'dedicated', operator: 'Exists' }],
          affinity,
          priorityClassName: 'system-node-critical',
          runtimeClassName: 'story',
          volumes: [
            { name: 'shared', emptyDir: {} },
            { name: 'motd', configMap: { name: 'motd' } },
          ],
          initContainers: [
            {
              name: 'prepare',
              image: images.apps,
              command: ['node', '-e', "require('node:fs').writeFileSync('/shared/prepared', 'yes')"],
              volumeMounts: [shared],
            },
          ],
          containers: [
            { name: 'mcp', resources: { requests: { cpu: '10m' } }, volumeMounts: [shared] },
            {
              name: 'sidecar',
              image: images.apps,
              command: ['node', '-e', SIDECAR],
              env: [key],
              volumeMounts: [shared, { name: 'motd', mountPath: '/etc/motd' }],
            },
          ],
        },
      },
    })
    const { url } = await world.reaches(SERVER, 'rich', 'Running')
    await using mcp = await connect('v2', await world.outside(url))
    world.expect((await whoAmI(mcp)).name).toBe('rich')

    const pod = await client.get(pods, at('rich-0'))
    world.expect(pod.metadata.annotations).toMatchObject({ 'example.com/owner': 'weather' })
    world.expect(pod.spec).toMatchObject({
      nodeSelector: label,
      priorityClassName: 'system-node-critical',
      runtimeClassName: 'story',
      affinity,
      serviceAccountName: 'rich-sa',
    })
    world.expect(pod.spec?.['tolerations']).toContainEqual({ key: 'dedicated', operator: 'Exists' })
    world.expect(container(pod.spec?.containers, 'mcp')).toMatchObject({ resources: { requests: { cpu: '10m' } } })
    world.expect((await world.proxyPods('rich'))[0]?.spec).toMatchObject({ serviceAccountName: 'rich-proxy-runner' })

    const spec = { selector: { app: 'rich', 'toolhive-basename': 'rich' }, ports: [{ port: 80, targetPort: 9999 }] }
    const service = await client.create(services, { metadata: at('sidecar'), spec })
    const seen = await world.eventually('the sidecar answers', async () =>
      (await request(`http://${world.reach(service, 80)}/`, { limitMs: 15_000 })).json(),
    )
    world.expect(seen).toEqual({ uid: 1000, root: 'EROFS', motd: 'grüße', prepared: 'yes', own: 'written', secret: 'from a Secret' })
  },
}

function container(all: readonly Container[] | undefined, name: string): Container | undefined {
  return all?.find((each) => each.name === name)
}
