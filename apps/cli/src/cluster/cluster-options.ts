import type { Command } from 'commander'

/** How to find the API server. */
export function addClusterOptions(command: Command): void {
  command
    .option('-n, --namespace <name>', 'the namespace (default: the one of the kubeconfig)')
    .option('--data-dir <folder>', 'the data folder of a platform on this machine (default: .thv, here or above)')
    .option('--kubeconfig <file>', 'another cluster (default: the platform, else KUBECONFIG, else ~/.kube/config)')
    .option('--context <name>', 'a context of the kubeconfig')
}
