import { startApiServer } from '@thv/cluster/apiserver/api-server'

/* The embedded API server alone, as the opponent of kube-apiserver with etcd: node api-server-main.ts FOLDER */

const server = await startApiServer({ folder: process.argv[2] ?? '', onError: (error) => console.error(error) })
console.log(`ready ${JSON.stringify({ url: server.url, caPem: server.caPem, adminToken: server.adminToken })}`)
