import { nodeControlGroup, nodeName, nodeNetwork } from './node-place.ts'

/* The configuration files of a node's programs. Kubernetes reads JSON where it reads YAML. */

export const pauseImage = 'thv.test/pause:1'
export const runtimeSocket = '/run/containerd/containerd.sock'

export function containerdConfig(files: { plugins: string; networks: string }): string {
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.restart"]

[grpc]
  address = "${runtimeSocket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  disable_apparmor = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${files.plugins}"
    conf_dir = "${files.networks}"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`
}

/** Every pod hangs on one bridge; a pod that calls its own Service comes back to itself (hairpin). */
export function networkConfig(): object {
  const bridge = {
    type: 'bridge',
    bridge: 'cni0',
    isGateway: true,
    ipMasq: false,
    hairpinMode: true,
    ipam: { type: 'host-local', ranges: [[{ subnet: nodeNetwork.pods }]], routes: [{ dst: '0.0.0.0/0' }] },
  }
  return { cniVersion: '0.4.0', name: 'pods', plugins: [bridge, { type: 'portmap', capabilities: { portMappings: true } }] }
}

export function kubeletConfig(files: { ca: string; cert: string; key: string; resolvConf: string }): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: nodeNetwork.node,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: files.ca } },
    authorization: { mode: 'Webhook' },
    tlsCertFile: files.cert,
    tlsPrivateKeyFile: files.key,
    containerRuntimeEndpoint: `unix://${runtimeSocket}`,
    clusterDomain: 'cluster.local',
    clusterDNS: [nodeNetwork.node],
    resolvConf: files.resolvConf,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${nodeControlGroup}`,
    enforceNodeAllocatable: [],
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    // A test machine with little free disk is no reason to evict pods or to delete images that no registry could bring back.
    evictionHard: {
      'memory.available': '0%',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
      'imagefs.inodesFree': '0%',
    },
    imageGCHighThresholdPercent: 100,
    localStorageCapacityIsolation: false,
    // Mounted ConfigMaps follow their changes within seconds, not minutes.
    syncFrequency: '5s',
    // Tests let containers crash: one that does so again is started again after about 10 s, not after minutes.
    featureGates: { KubeletCrashLoopBackOffMax: true },
    crashLoopBackOff: { maxContainerRestartPeriod: '2s' },
    healthzBindAddress: nodeNetwork.node,
    enableServer: true,
  }
}

export function kubeProxyConfig(kubeconfig: string): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clientConnection: { kubeconfig },
    clusterCIDR: nodeNetwork.pods,
    hostnameOverride: nodeName,
    bindAddress: nodeNetwork.node,
    healthzBindAddress: `${nodeNetwork.node}:10256`,
    metricsBindAddress: `${nodeNetwork.node}:10249`,
    // Zero: leave the connection tracking of the machine as it is.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    iptables: { minSyncPeriod: '0s', syncPeriod: '30s' },
  }
}

/** Names of the cluster, and at once "no such name" for all others: nothing leaves the machine. */
export function corednsConfig(kubeconfig: string): string {
  return `cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {
  bind ${nodeNetwork.node}
  errors
  ready ${nodeNetwork.node}:8181
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig ${kubeconfig}
    pods insecure
    ttl 1
  }
}
.:53 {
  bind ${nodeNetwork.node}
  errors
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`
}
