import type { Command } from 'commander'

/** How to find the API server. */
export function addClusterOptions(command: Command): void {
  command
    .option('-n, --namespace <name>', 'namespace (default: that of the kubeconfig)')
    .option('--data-dir <folder>', 'data folder of a local platform (default: .thv, here or above)')
    .option('--kubeconfig <file>', 'kubeconfig of a cluster (default: the local platform, KUBECONFIG, ~/.kube/config)')
    .option('--context <name>', 'kubeconfig context')
}
