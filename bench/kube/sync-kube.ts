import { bearerToken, configMaps, createKubeClient, Reflector } from '@thv/kube'
import { startMeasuring } from './report.ts'

const { THV_SERVER = '', THV_TOKEN = '', THV_CA = '', THV_NAMESPACE = '' } = process.env
const client = createKubeClient({ server: THV_SERVER, tls: { ca: THV_CA }, auth: bearerToken(THV_TOKEN) })
const report = startMeasuring()
const stop = new AbortController()
const reflector = new Reflector({ client, type: configMaps, namespace: THV_NAMESPACE })
const running = reflector.run(stop.signal)
await reflector.waitForSync()
report({ objects: reflector.store.size })
stop.abort()
await running
await client.close()
