import { describeLoginClients } from '@thv/testkit/oauth/describe-login-clients'
import { startLoginVmcp } from './testing/login-vmcp.ts'

describeLoginClients('a virtual server with an authorization server and a real provider', async (stack, providers) => {
  const { vmcp, issuer } = await startLoginVmcp(stack, { cimd: { enabled: true } }, providers)
  return { url: vmcp.url, issuer }
})
