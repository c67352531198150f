import { bearerToken, createController, createDiscovery, createKubeClient, defaultConnection, Reflector } from '@thv/kube'
import { reportLife } from './report.ts'

const client = createKubeClient({ server: 'https://127.0.0.1:1', tls: {}, auth: bearerToken('none') })
// Named here so that the bundler keeps all of it, as an app would.
const parts = [createController, createDiscovery, defaultConnection, Reflector]
reportLife({ parts: parts.length })
await client.close()
