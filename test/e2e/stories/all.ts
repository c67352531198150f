import { crash } from './crash.ts'
import { deletion } from './deletion.ts'
import { edit } from './edit.ts'
import { gateway } from './gateway.ts'
import { httpServers } from './http-servers.ts'
import { incomingIdentity } from './incoming-identity.ts'
import { oauthClients } from './oauth-clients.ts'
import { oneLogin } from './one-login.ts'
import { operatorKilled } from './operator-killed.ts'
import { permissionProfile } from './permission-profile.ts'
import { podTemplate } from './pod-template.ts'
import { policiesOfARemoteProxy } from './policies-of-a-remote-proxy.ts'
import { policySyntax } from './policy-syntax.ts'
import { protectedServers } from './protected-servers.ts'
import { registryExport } from './registry-export.ts'
import { registryGit } from './registry-git.ts'
import { registryOauth } from './registry-oauth.ts'
import { registryReplicas } from './registry-replicas.ts'
import { registrySelector } from './registry-selector.ts'
import { registrySize } from './registry-size.ts'
import { remoteProxy } from './remote-proxy.ts'
import { scale } from './scale.ts'
import { serverEntries } from './server-entries.ts'
import { stdioServer } from './stdio-server.ts'
import type { Story } from './story.ts'
import { toolConfig } from './tool-config.ts'
import { virtualServer } from './virtual-server.ts'
import { wrongImage } from './wrong-image.ts'

/** The long ones first. */
export const STORIES: readonly Story[] = [
  oauthClients,
  crash,
  gateway,
  deletion,
  scale,
  virtualServer,
  oneLogin,
  serverEntries,
  registrySelector,
  registryExport,
  registryGit,
  registryReplicas,
  registrySize,
  registryOauth,
  protectedServers,
  toolConfig,
  edit,
  remoteProxy,
  wrongImage,
  policySyntax,
  policiesOfARemoteProxy,
  incomingIdentity,
  podTemplate,
  httpServers,
  stdioServer,
  permissionProfile,
  operatorKilled,
]
