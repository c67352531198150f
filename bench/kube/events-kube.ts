import { bearerToken, configMaps, createController, createKubeClient, done, Reflector, watchSelf } from '@thv/kube'
import { LAST_VERSION, REPLAY } from './replay-server.ts'
import { startMeasuring } from './report.ts'

const client = createKubeClient({ server: process.env['THV_SERVER'] ?? '', tls: {}, auth: bearerToken('none') })
const stop = new AbortController()
const reflector = new Reflector({ client, type: configMaps })
let seen = 0
const finished = Promise.withResolvers<void>()
const controller = createController({
  name: 'bench',
  sources: [watchSelf(reflector)],
  reconcile: async ({ namespace, name }) => {
    const version = reflector.store.get({ ...(namespace && { namespace }), name })?.metadata.resourceVersion
    seen += 1
    if (version === LAST_VERSION) finished.resolve()
    return done
  },
})
const running = [reflector.run(stop.signal), controller.run(stop.signal)]
await reflector.waitForSync()
const report = startMeasuring()
await finished.promise
report({ events: REPLAY.events, reconciles: seen })
stop.abort()
await Promise.all(running)
await client.close()
