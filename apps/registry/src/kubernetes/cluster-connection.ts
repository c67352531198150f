import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import { createKubeClient, defaultConnection, type KubeClient } from '@thv/kube'

export interface ClusterConnection {
  readonly client: KubeClient
  /** Of the pod, or of the context of the kubeconfig. */
  readonly namespace: string | undefined
  /** URL of the API server. */
  readonly server?: string
}

export type ConnectCluster = (source: KubernetesSource) => Promise<ClusterConnection>

/** By the kubeconfig of the source, else as the pod that this is. */
export async function connectCluster({ kubeconfig }: KubernetesSource): Promise<ClusterConnection> {
  const connection = await defaultConnection({ kubeconfig: kubeconfig?.path, context: kubeconfig?.context })
  return { client: createKubeClient(connection), namespace: connection.namespace, server: connection.server }
}
