{{- /* Generated from config/kubernetes by `make generate`. */}}
{{- define "manifests" }}
{{- $gateway := eq .mode "gateway" }}
{{- $page := eq .mode "page" }}
{{- $volumes := and $gateway .gateway.volumes }}
{{- $token := and .backend.token (ne .mode "page") }}
{{- $securePorts := .securePorts }}
{{- $hostPorts := .hostPorts }}
{{- $ebpf := .ebpf }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
rules:
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - list
  - watch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: otelcol-profiles-agent
subjects:
- kind: ServiceAccount
  name: otelcol-profiles-agent
  namespace: otelcol-profiles
---
apiVersion: v1
data:
  config.yaml: |
    # The agent of a node: it scrapes the pods of its own node, receives their pushes, and sends all profiles to a gateway or a
    # backend through a queue on disk. daemonset.yaml sets the K8S_ variables; the overlays set BACKEND_ENDPOINT and
    # BACKEND_INSECURE.

    receivers:
      pprof:
        # Pods of this node that have annotations for it; relabel.yaml lists them.
        scrape:
          configs:
            - job_name: kubernetes-pods
              # CPU profiles are recorded for this time minus a second.
              scrape_interval: ${env:SCRAPE_INTERVAL:-15s}
              kubernetes_sd_configs:
                - role: pod
                  selectors:
                    - role: pod
                      field: spec.nodeName=${env:K8S_NODE_NAME}
              relabel_configs: ${file:${env:CONFIG_FOLDER:-/etc/otelcol-profiles}/relabel.yaml}
              # The standard kinds are enabled by default. This one is scraped only if a pod's annotation names it.
              profiles:
                fgprof:
                  enabled: true
          # The page that lists all targets. Only `kubectl port-forward` reaches it.
          status:
            endpoint: ${env:STATUS_ENDPOINT:-localhost:4041}
        server:
          endpoint: ${env:PPROF_ENDPOINT:-:4040}
        # The agent's own profiles. They show that the connection to the backend works before any pod has annotations.
        self:
          collection_interval: 60s
          block_profile_fraction: 0
          mutex_profile_fraction: 0
        # Decompressed.
        limits:
          max_profile_bytes: 8000000
      # Profiles, and the log records of Splunk's agents.
      otlp_profiles:
        protocols:
          grpc:
            endpoint: ${env:OTLP_GRPC_ENDPOINT:-:4317}
            max_recv_msg_size_mib: 16
          http:
            endpoint: ${env:OTLP_HTTP_ENDPOINT:-:4318}
      splunk_profiling/hec:
        protocols:
          hec:
            endpoint: ${env:SPLUNK_HEC_ENDPOINT:-:8088}

    connectors:
      # Takes the profiles out of OTLP log records. Other records are dropped here.
      splunk_profiling/logs:
      # Metrics of the profiles, such as processor time by service, for Prometheus or another backend of metrics
      # (docs/metrics.md). To send them, remove each "# @metrics ".
      # @metrics profile_metrics:
        # The hottest functions of each service, compared with a day before, over restarts, too.
        # @metrics top_functions: [{profile: process_cpu/cpu, compare: {to: 24h}}]
        # @metrics storage: file_storage

    processors:
      # Refuses data before memory runs out; the sender is asked to retry. Percentages are of the container's limit, and both
      # thresholds are below GOMEMLIMIT.
      memory_limiter:
        check_interval: 1s
        limit_percentage: 75
        spike_limit_percentage: 15
      # A push without a name gets the name of its pod below.
      transform/unnamed:
        error_mode: ignore
        profile_statements:
          - delete_key(resource.attributes, "service.name") where IsMatch(resource.attributes["service.name"], "^unknown_service")
      # Identifies the pod of a push by the sender's address, and adds attributes that discovery does not know to what was
      # scraped. It does not change attributes that are there. It does not wait_for_metadata, which would end the agent
      # while the API server is away: until that answers, profiles arrive without these attributes.
      k8s_attributes:
        auth_type: serviceAccount
        filter:
          node_from_env_var: K8S_NODE_NAME
        extract:
          metadata:
            - k8s.namespace.name
            - k8s.pod.name
            - k8s.pod.uid
            - k8s.pod.ip
            - k8s.pod.start_time
            - k8s.node.name
            - k8s.deployment.name
            - k8s.replicaset.name
            - k8s.statefulset.name
            - k8s.daemonset.name
            - k8s.job.name
            - k8s.cronjob.name
            - k8s.container.name
            - container.id
            - container.image.name
            - service.name
            - service.namespace
            - service.version
            - service.instance.id
          # Annotations resource.opentelemetry.io/<attribute> of the pod.
          otel_annotations: true
        pod_association:
          - sources:
              - from: resource_attribute
                name: k8s.pod.uid
          - sources:
              - from: resource_attribute
                name: k8s.pod.ip
          - sources:
              - from: connection
      transform/cluster:
        error_mode: ignore
        profile_statements:
          - set(resource.attributes["service.name"], "unknown_service") where resource.attributes["service.name"] == nil
          - set(resource.attributes["k8s.cluster.name"], "${env:K8S_CLUSTER_NAME:-}") where "${env:K8S_CLUSTER_NAME:-}" != ""
      # After all processors that change profiles: it removes the dictionary entries that they leave unused.
      # Senders get their answer when the batch is in the queue on disk.
      dictionary_dedup:
        timeout: 1s
        acknowledge: delivered

    exporters:
      otlp_grpc:
        endpoint: ${env:BACKEND_ENDPOINT}
        tls:
          insecure: ${env:BACKEND_INSECURE:-false}
        compression: ${env:BACKEND_COMPRESSION:-gzip}
        # Retry without an end: giving up would lose the batch.
        retry_on_failure:
          initial_interval: 1s
          max_interval: 30s
          max_elapsed_time: 0
        sending_queue:
          storage: file_storage
          sizer: bytes
          queue_size: 1000000000
          # If the queue is full, scrapes and pushes wait.
          block_on_overflow: true
      # @metrics otlp_http/metrics:
        # @metrics endpoint: http://prometheus.monitoring:9090/api/v1/otlp
        # One after the other, since Prometheus refuses points older than its last. If it is away for so long that the queue
        # is full, newer sums replace the dropped ones.
        # @metrics sending_queue: {sizer: bytes, queue_size: 4000000, num_consumers: 1}

    extensions:
      file_storage:
        directory: ${env:QUEUE_DIRECTORY:-/var/lib/otelcol-profiles}/queue
        create_directory: true
        # A queue that a node without power has torn would keep the agent from starting on it again.
        fsync: true
        # Shrinks the file after an outage of the backend.
        compaction:
          directory: ${env:QUEUE_DIRECTORY:-/var/lib/otelcol-profiles}/queue
          on_rebound: true
          cleanup_on_start: true
      health_check:
        endpoint: ${env:HEALTH_ENDPOINT:-:13133}

    service:
      extensions: [file_storage, health_check]
      pipelines:
        logs:
          receivers: [otlp_profiles]
          processors: [memory_limiter]
          exporters: [splunk_profiling/logs]
        profiles:
          receivers: [pprof, otlp_profiles, splunk_profiling/hec, splunk_profiling/logs]
          processors: [memory_limiter, transform/unnamed, k8s_attributes, transform/cluster, dictionary_dedup]
          exporters: [otlp_grpc]
        # @metrics profiles/metrics:
          # @metrics receivers: [pprof, otlp_profiles, splunk_profiling/hec, splunk_profiling/logs]
          # @metrics processors: [memory_limiter, transform/unnamed, k8s_attributes, transform/cluster]
          # @metrics exporters: [profile_metrics]
        # @metrics metrics:
          # @metrics receivers: [profile_metrics]
          # @metrics exporters: [otlp_http/metrics]
      telemetry:
        # The agent's own resource, also of its own profiles.
        resource:
          attributes:
            - {name: k8s.namespace.name, value: "${env:K8S_NAMESPACE_NAME}"}
            - {name: k8s.node.name, value: "${env:K8S_NODE_NAME}"}
            - {name: k8s.pod.name, value: "${env:K8S_POD_NAME}"}
            - {name: k8s.pod.uid, value: "${env:K8S_POD_UID}"}
        metrics:
          readers:
            - pull:
                exporter:
                  prometheus:
                    host: ${env:METRICS_HOST:-0.0.0.0}
                    port: ${env:METRICS_PORT:-8888}
{{- if $ebpf }}
  ebpf.yaml: |
    # The component ebpf adds this to agent.yaml.

    receivers:
      # If a node's kernel lacks something, the agent logs it, works without sampling, and tries again.
      profiling:
        samples_per_second: ${env:SAMPLES_PER_SECOND:-20}
      # Memory and locks of Go programs, and recordings of JVMs, that nobody has prepared. docs/ebpf.md describes the effects on them.
      processes:
        interval: ${env:PROCESSES_INTERVAL:-1m}
        go: {enabled: "${env:PROCESSES_GO:-true}"}
        java: {enabled: "${env:PROCESSES_JAVA:-true}"}

    processors:
      # As in agent.yaml, but first by the container id that the profiler reports.
      k8s_attributes:
        pod_association:
          - sources:
              - from: resource_attribute
                name: container.id
          - sources:
              - from: resource_attribute
                name: k8s.pod.uid
          - sources:
              - from: resource_attribute
                name: k8s.pod.ip
          - sources:
              - from: connection
      # Processes outside of pods get only the node.
      resource/node:
        attributes:
          - {key: k8s.node.name, value: "${env:K8S_NODE_NAME}", action: insert}
      # A resource and a service for each program that was sampled.
      process_resource:
      # Names for native functions, from the files that processes have mapped.
      symbolize:
        max_wait: 1s
      # A batch of several of the profiler's reports has less repetition. Nobody waits for an answer.
      dictionary_dedup/ebpf:
        timeout: ${env:EBPF_BATCH_TIMEOUT:-30s}
        acknowledge: batched
        max_batch_bytes: 4000000

    service:
      pipelines:
        profiles/ebpf:
          receivers: [profiling, processes]
          processors: [memory_limiter, k8s_attributes, resource/node, process_resource, symbolize, transform/cluster, dictionary_dedup/ebpf]
          exporters:
            - otlp_grpc
            # With the connector of agent.yaml.
            # @metrics - profile_metrics
{{- end }}
  relabel.yaml: |
    # Relabel rules for pods that have annotations for profiling. They are written as in the collector's configuration, under
    # `relabel_configs` of a job with `kubernetes_sd_configs: [{role: pod}]`: a `$` is written `$$`.
    #
    # There are two families of annotations, which can be mixed:
    #
    #   profiles.grafana.com/<kind>.scrape: "true"       one kind: cpu, memory, goroutine, block, mutex or fgprof
    #   profiles.grafana.com/<kind>.port: "6060"         on this port
    #   profiles.grafana.com/<kind>.port_name: "http"    or on the container's port of this name
    #   profiles.grafana.com/<kind>.path: "/heap"        instead of the configured path
    #   profiles.grafana.com/<kind>.scheme: "https"      instead of the configured scheme
    #
    #   pprof.io/scrape: "true"                          every kind that is enabled, but for fgprof
    #   pprof.io/port, pprof.io/port_name, pprof.io/scheme   as above, for every kind without its own
    #   pprof.io/path: "/internal"                       is prepended to the configured path of every kind
    #
    # `profiles.grafana.com/<kind>.scrape: "false"` excludes a kind from `pprof.io/scrape`. Without a port, all TCP ports that
    # the containers declare are tried, as is usual. A kind that is not enabled in the job's `profiles` is
    # not scraped, whatever an annotation says: enable fgprof there.
    #
    # How it works: the rules run once for every container port and kind of profile, with the kind in `__profile_name__`.
    # First, this kind's annotations are moved to labels that do not name the kind, `__tmp_…`; then there is
    # one rule for each thing to do. No label without `__` is set: names and `k8s.*` attributes come from what discovery
    # knows, and two container ports whose rules lead to the same address count as one target.

    # Only ports of running containers: a container that initialises is over by then, unless it is a sidecar with a port.
    - action: drop
      source_labels: [__meta_kubernetes_pod_phase]
      regex: Pending|Succeeded|Failed
    - action: drop
      source_labels: [__meta_kubernetes_pod_container_port_protocol]
      regex: UDP|SCTP
    - action: drop
      source_labels: [__meta_kubernetes_pod_container_init, __meta_kubernetes_pod_container_port_number]
      regex: true;

    # The annotations profiles.grafana.com/<kind>.… of this kind: shorter names for them, and then one rule for each. The rules read
    # one annotation at a time, since a value may have any character; one that begins with `;` is ignored.
    - action: labelmap
      regex: __meta_kubernetes_pod_annotation_profiles_grafana_com_((?:cpu|memory|goroutine|block|mutex|fgprof)_(?:scrape|port|port_name|path|scheme))
      replacement: __tmp_$$1
    - {source_labels: [__profile_name__, __tmp_cpu_scrape], regex: "process_cpu;([^;].*)", target_label: __tmp_scrape}
    - {source_labels: [__profile_name__, __tmp_memory_scrape], regex: "memory;([^;].*)", target_label: __tmp_scrape}
    - {source_labels: [__profile_name__, __tmp_goroutine_scrape], regex: "goroutine;([^;].*)", target_label: __tmp_scrape}
    - {source_labels: [__profile_name__, __tmp_block_scrape], regex: "block;([^;].*)", target_label: __tmp_scrape}
    - {source_labels: [__profile_name__, __tmp_mutex_scrape], regex: "mutex;([^;].*)", target_label: __tmp_scrape}
    - {source_labels: [__profile_name__, __tmp_fgprof_scrape], regex: "fgprof;([^;].*)", target_label: __tmp_scrape}
    - {source_labels: [__profile_name__, __tmp_cpu_port], regex: "process_cpu;([^;].*)", target_label: __tmp_port}
    - {source_labels: [__profile_name__, __tmp_memory_port], regex: "memory;([^;].*)", target_label: __tmp_port}
    - {source_labels: [__profile_name__, __tmp_goroutine_port], regex: "goroutine;([^;].*)", target_label: __tmp_port}
    - {source_labels: [__profile_name__, __tmp_block_port], regex: "block;([^;].*)", target_label: __tmp_port}
    - {source_labels: [__profile_name__, __tmp_mutex_port], regex: "mutex;([^;].*)", target_label: __tmp_port}
    - {source_labels: [__profile_name__, __tmp_fgprof_port], regex: "fgprof;([^;].*)", target_label: __tmp_port}
    - {source_labels: [__profile_name__, __tmp_cpu_port_name], regex: "process_cpu;([^;].*)", target_label: __tmp_port_name}
    - {source_labels: [__profile_name__, __tmp_memory_port_name], regex: "memory;([^;].*)", target_label: __tmp_port_name}
    - {source_labels: [__profile_name__, __tmp_goroutine_port_name], regex: "goroutine;([^;].*)", target_label: __tmp_port_name}
    - {source_labels: [__profile_name__, __tmp_block_port_name], regex: "block;([^;].*)", target_label: __tmp_port_name}
    - {source_labels: [__profile_name__, __tmp_mutex_port_name], regex: "mutex;([^;].*)", target_label: __tmp_port_name}
    - {source_labels: [__profile_name__, __tmp_fgprof_port_name], regex: "fgprof;([^;].*)", target_label: __tmp_port_name}
    - {source_labels: [__profile_name__, __tmp_cpu_path], regex: "process_cpu;([^;].*)", target_label: __tmp_path}
    - {source_labels: [__profile_name__, __tmp_memory_path], regex: "memory;([^;].*)", target_label: __tmp_path}
    - {source_labels: [__profile_name__, __tmp_goroutine_path], regex: "goroutine;([^;].*)", target_label: __tmp_path}
    - {source_labels: [__profile_name__, __tmp_block_path], regex: "block;([^;].*)", target_label: __tmp_path}
    - {source_labels: [__profile_name__, __tmp_mutex_path], regex: "mutex;([^;].*)", target_label: __tmp_path}
    - {source_labels: [__profile_name__, __tmp_fgprof_path], regex: "fgprof;([^;].*)", target_label: __tmp_path}
    - {source_labels: [__profile_name__, __tmp_cpu_scheme], regex: "process_cpu;([^;].*)", target_label: __tmp_scheme}
    - {source_labels: [__profile_name__, __tmp_memory_scheme], regex: "memory;([^;].*)", target_label: __tmp_scheme}
    - {source_labels: [__profile_name__, __tmp_goroutine_scheme], regex: "goroutine;([^;].*)", target_label: __tmp_scheme}
    - {source_labels: [__profile_name__, __tmp_block_scheme], regex: "block;([^;].*)", target_label: __tmp_scheme}
    - {source_labels: [__profile_name__, __tmp_mutex_scheme], regex: "mutex;([^;].*)", target_label: __tmp_scheme}
    - {source_labels: [__profile_name__, __tmp_fgprof_scheme], regex: "fgprof;([^;].*)", target_label: __tmp_scheme}

    # Whether to scrape this kind: its own annotation, or else pprof.io/scrape.
    - source_labels: [__profile_name__, __tmp_scrape, __meta_kubernetes_pod_annotation_pprof_io_scrape]
      regex: (?:process_cpu|memory|goroutine|block|mutex);;(.+)
      target_label: __tmp_scrape
    - action: keep
      source_labels: [__tmp_scrape]
      regex: "true"

    # The annotations pprof.io/…, for kinds without their own.
    - source_labels: [__tmp_port, __meta_kubernetes_pod_annotation_pprof_io_port]
      regex: ;(.+)
      target_label: __tmp_port
    - source_labels: [__tmp_port_name, __meta_kubernetes_pod_annotation_pprof_io_port_name]
      regex: ;(.+)
      target_label: __tmp_port_name
    - source_labels: [__tmp_scheme, __meta_kubernetes_pod_annotation_pprof_io_scheme]
      regex: ;(.+)
      target_label: __tmp_scheme
    - source_labels: [__tmp_path, __meta_kubernetes_pod_annotation_pprof_io_path]
      regex: ;(.+)
      target_label: __profile_path_prefix__

    # Where. Without a name every port has the wanted one.
    - source_labels: [__tmp_port_name, __meta_kubernetes_pod_container_port_name]
      regex: ;(.*)
      target_label: __tmp_port_name
    - action: keepequal
      source_labels: [__meta_kubernetes_pod_container_port_name]
      target_label: __tmp_port_name
    - action: drop
      source_labels: [__tmp_port, __meta_kubernetes_pod_container_port_number]
      regex: ;
    - source_labels: [__meta_kubernetes_pod_ip]
      regex: ([^:]+)
      target_label: __tmp_host
    - source_labels: [__meta_kubernetes_pod_ip]
      regex: (.*:.*)
      replacement: "[$$1]"
      target_label: __tmp_host
    - source_labels: [__tmp_host, __tmp_port]
      regex: (.+);(.+)
      replacement: $$1:$$2
      target_label: __address__
    - source_labels: [__tmp_scheme]
      regex: (.+)
      target_label: __scheme__
    - source_labels: [__tmp_path]
      regex: (.+)
      target_label: __profile_path__
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
---
apiVersion: v1
data:
{{- if (and (not $gateway) (not $page)) }}
  BACKEND_INSECURE: "false"
{{- end }}
{{- if (or $gateway $page) }}
  BACKEND_COMPRESSION: zstd
{{- end }}
{{- if $gateway }}
  BACKEND_ENDPOINT: otelcol-profiles-gateway:4317
{{- end }}
{{- if $page }}
  BACKEND_ENDPOINT: otelcol-profiles-page:4317
{{- end }}
{{- if (or $gateway $page) }}
  BACKEND_INSECURE: "true"
{{- end }}
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent-env
{{- if $gateway }}
---
apiVersion: v1
data:
  config.yaml: |
    # A gateway of the cluster: it merges the requests of many agents, so that names and stacks that they share are sent once,
    # and sends them to the backend. The overlay sets BACKEND_ENDPOINT and BACKEND_INSECURE.
    #
    # Its queue is in memory, up to 80 MB of encoded profiles. A gateway that is killed loses its queue. A gateway that stops in
    # order (rollout, scaling down, drained node) tries to send each batch once. If the backend is not available then, the queue
    # is lost, too; otherwise nothing is lost. components/gateway-volumes puts the queue on a volume, which keeps it in all
    # these cases.
    #
    # If the queue is full, agents wait and keep their queues on their nodes' disks.

    receivers:
      otlp_profiles:
        protocols:
          grpc:
            endpoint: ${env:OTLP_GRPC_ENDPOINT:-:4317}
            max_recv_msg_size_mib: 32
            # Agents connect again after this time, perhaps to a new gateway.
            keepalive:
              server_parameters:
                max_connection_age: 120s
                max_connection_age_grace: 30s
          http:
            endpoint: ${env:OTLP_HTTP_ENDPOINT:-:4318}

    processors:
      # Refuses data before memory runs out; agents retry. Percentages are of the container's limit, and both thresholds are
      # below GOMEMLIMIT.
      memory_limiter:
        check_interval: 1s
        limit_percentage: 75
        spike_limit_percentage: 15
      dictionary_dedup:
        timeout: 1s
        max_batch_bytes: 4000000

    # Metrics of the profiles, such as processor time by service, for Prometheus or another backend of metrics
    # (docs/metrics.md). To send them, remove each "# @metrics ".
    # @metrics connectors:
      # @metrics profile_metrics:

    exporters:
      otlp_grpc:
        endpoint: ${env:BACKEND_ENDPOINT}
        tls:
          insecure: ${env:BACKEND_INSECURE:-false}
        compression: ${env:BACKEND_COMPRESSION:-gzip}
        # Retry without an end: giving up would lose the batch.
        retry_on_failure:
          initial_interval: 1s
          max_interval: 30s
          max_elapsed_time: 0
        sending_queue:
          sizer: bytes
          # Encoded. Decoded profiles take five times as much memory, which is still below the limiter's lower threshold.
          queue_size: 80000000
          # If the queue is full, agents wait.
          block_on_overflow: true
      # @metrics otlp_http/metrics:
        # @metrics endpoint: http://prometheus.monitoring:9090/api/v1/otlp
        # One after the other, since Prometheus refuses points older than its last. If it is away for so long that the queue
        # is full, newer sums replace the dropped ones.
        # @metrics sending_queue: {sizer: bytes, queue_size: 4000000, num_consumers: 1}

    extensions:
      health_check:
        endpoint: ${env:HEALTH_ENDPOINT:-:13133}

    service:
      extensions: [health_check]
      pipelines:
        profiles:
          receivers: [otlp_profiles]
          processors: [memory_limiter, dictionary_dedup]
          exporters: [otlp_grpc]
        # @metrics profiles/metrics:
          # @metrics receivers: [otlp_profiles]
          # @metrics processors: [memory_limiter]
          # @metrics exporters: [profile_metrics]
        # @metrics metrics:
          # @metrics receivers: [profile_metrics]
          # @metrics exporters: [otlp_http/metrics]
      telemetry:
        metrics:
          readers:
            - pull:
                exporter:
                  prometheus:
                    host: ${env:METRICS_HOST:-0.0.0.0}
                    port: ${env:METRICS_PORT:-8888}
{{- if $volumes }}
  queue.yaml: |
    # Merged into ../gateway/gateway.yaml: the queue is on the pod's volume.
    processors:
      # Agents get their answer when the batch with their message is on the volume, so a gateway that is killed loses nothing
      # that it has acknowledged.
      dictionary_dedup:
        acknowledge: delivered

    # With the connector of gateway.yaml: the hottest functions of each service, compared with a day before, over restarts, too.
    # @metrics connectors:
      # @metrics profile_metrics:
        # @metrics top_functions: [{profile: process_cpu/cpu, compare: {to: 24h}}]
        # @metrics storage: file_storage

    exporters:
      otlp_grpc:
        sending_queue:
          storage: file_storage
          # The volume needs three times this size: the file grows beyond its content, and is copied to shrink it.
          queue_size: 1000000000

    extensions:
      file_storage:
        directory: ${env:QUEUE_DIRECTORY:-/var/lib/otelcol-profiles}/queue
        create_directory: true
        fsync: true
        # Shrinks the file after an outage of the backend.
        compaction:
          directory: ${env:QUEUE_DIRECTORY:-/var/lib/otelcol-profiles}/queue
          on_rebound: true
          cleanup_on_start: true

    service:
      extensions: [file_storage, health_check]
{{- end }}
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-gateway
{{- end }}
{{- if $page }}
---
apiVersion: v1
data:
  config.yaml: |
    # Keeps the profiles of the cluster's agents on the pod's volume, and shows them on a page.

    receivers:
      otlp_profiles:
        protocols:
          grpc:
            endpoint: ${env:OTLP_GRPC_ENDPOINT:-:4317}
            max_recv_msg_size_mib: 32
          http:
            endpoint: ${env:OTLP_HTTP_ENDPOINT:-:4318}

    processors:
      # Refuses data before memory runs out; agents retry. Percentages are of the container's limit, and both thresholds are
      # below GOMEMLIMIT.
      memory_limiter:
        check_interval: 1s
        limit_percentage: 75
        spike_limit_percentage: 15

    exporters:
      # Agents get their answer when their message is in the store's log.
      profile_store:
        server:
          # Profiles are confidential: set tls and auth before it listens on other addresses than localhost.
          endpoint: ${env:PAGE_ENDPOINT:-localhost:4042}
        storage:
          directory: ${env:STORE_DIRECTORY:-/var/lib/otelcol-profiles}/store
          retention: ${env:STORE_RETENTION:-336h}
          # Half of the volume.
          max_bytes: ${env:STORE_MAX_BYTES:-10737418240}

    extensions:
      health_check:
        endpoint: ${env:HEALTH_ENDPOINT:-:13133}

    service:
      extensions: [health_check]
      pipelines:
        profiles:
          receivers: [otlp_profiles]
          processors: [memory_limiter]
          exporters: [profile_store]
      telemetry:
        metrics:
          readers:
            - pull:
                exporter:
                  prometheus:
                    host: ${env:METRICS_HOST:-0.0.0.0}
                    port: ${env:METRICS_PORT:-8888}
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-page
{{- end }}
{{- if $securePorts }}
---
apiVersion: v1
data:
  agent-to-gateway.yaml: |
    # Merged into agent.yaml where the agents send to gateways or to the page.

    exporters:
      otlp_grpc:
        tls:
          insecure: false
          ca_file: /etc/otelcol-profiles-ports/ca.crt
          reload_interval: 1h
        auth: {authenticator: bearertokenauth/gateway}

    extensions:
      bearertokenauth/gateway:
        filename: /etc/otelcol-profiles-ports/agents-token

    service:
      extensions: [file_storage, health_check, bearertokenauth/clients, bearertokenauth/hec, bearertokenauth/gateway]
  agent.yaml: |
    # Merged into ../../base/agent.yaml: programs that push need TLS and one of the tokens.

    receivers:
      pprof:
        server:
          tls: &tls
            cert_file: /etc/otelcol-profiles-ports/tls.crt
            key_file: /etc/otelcol-profiles-ports/tls.key
            reload_interval: 1h
          auth: {authenticator: bearertokenauth/clients}
      otlp_profiles:
        protocols:
          grpc:
            tls: *tls
            auth: {authenticator: bearertokenauth/clients}
          http:
            tls: *tls
            auth: {authenticator: bearertokenauth/clients}
      splunk_profiling/hec:
        protocols:
          hec:
            tls: *tls
            auth: {authenticator: bearertokenauth/hec}

    extensions:
      bearertokenauth/clients:
        filename: /etc/otelcol-profiles-ports/tokens
      # HEC calls the scheme Splunk.
      bearertokenauth/hec:
        scheme: Splunk
        filename: /etc/otelcol-profiles-ports/tokens

    service:
      extensions: [file_storage, health_check, bearertokenauth/clients, bearertokenauth/hec]
  gateway.yaml: |
    # Merged into ../gateway/gateway.yaml and ../page/page.yaml: agents need TLS and their token.

    receivers:
      otlp_profiles:
        protocols:
          grpc:
            tls: &tls
              cert_file: /etc/otelcol-profiles-ports/tls.crt
              key_file: /etc/otelcol-profiles-ports/tls.key
              reload_interval: 1h
            auth: {authenticator: bearertokenauth/agents}
          http:
            tls: *tls
            auth: {authenticator: bearertokenauth/agents}

    extensions:
      bearertokenauth/agents:
        filename: /etc/otelcol-profiles-ports/agents-token

    service:
      extensions: [health_check, bearertokenauth/agents]
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-ports
{{- end }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  labels:
    app.kubernetes.io/component: agent
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
{{- if (and (not $gateway) (not $page)) }}
    otelcol-profiles/sends-to: backend
{{- end }}
{{- if $gateway }}
    otelcol-profiles/sends-to: gateway
{{- end }}
{{- if $page }}
    otelcol-profiles/sends-to: page
{{- end }}
  name: otelcol-profiles-agent
spec:
  selector:
    matchLabels:
      app.kubernetes.io/component: agent
      app.kubernetes.io/name: otelcol-profiles
  template:
    metadata:
      labels:
        app.kubernetes.io/component: agent
        app.kubernetes.io/name: otelcol-profiles
        app.kubernetes.io/part-of: otelcol-profiles
    spec:
      automountServiceAccountToken: true
      containers:
      - args:
        - --config=/etc/otelcol-profiles/config.yaml
{{- if (and (not $gateway) $token) }}
        - '--config=yaml:exporters::otlp_grpc::headers::authorization: Bearer ${env:BACKEND_TOKEN}'
{{- end }}
{{- if $securePorts }}
        - --config=/etc/otelcol-profiles-ports/agent.yaml
{{- end }}
{{- if (or (and $gateway $securePorts) (and $page $securePorts)) }}
        - --config=/etc/otelcol-profiles-ports/agent-to-gateway.yaml
{{- end }}
{{- if $ebpf }}
        - --config=/etc/otelcol-profiles/ebpf.yaml
{{- end }}
        env:
        - name: K8S_NODE_NAME
          valueFrom:
            fieldRef:
              fieldPath: spec.nodeName
        - name: K8S_NAMESPACE_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        - name: K8S_POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: K8S_POD_UID
          valueFrom:
            fieldRef:
              fieldPath: metadata.uid
        - name: GOMEMLIMIT
          valueFrom:
            resourceFieldRef:
              containerName: otelcol-profiles
              divisor: "1"
              resource: requests.memory
        - name: GOMAXPROCS
          valueFrom:
            resourceFieldRef:
              containerName: otelcol-profiles
              divisor: "1"
              resource: limits.cpu
{{- if (and (not $gateway) $token) }}
        - name: BACKEND_TOKEN
          valueFrom:
            secretKeyRef:
              key: token
              name: otelcol-profiles-backend
{{- end }}
        envFrom:
        - configMapRef:
            name: otelcol-profiles-agent-env
        image: otelcol-profiles
        livenessProbe:
          failureThreshold: 3
          httpGet:
            path: /
            port: health
          periodSeconds: 20
          timeoutSeconds: 5
        name: otelcol-profiles
        ports:
        - containerPort: 4317
{{- if $hostPorts }}
          hostPort: 4317
{{- end }}
          name: otlp-grpc
        - containerPort: 4318
{{- if $hostPorts }}
          hostPort: 4318
{{- end }}
          name: otlp-http
        - containerPort: 4040
{{- if $hostPorts }}
          hostPort: 4040
{{- end }}
          name: pprof-push
        - containerPort: 8088
{{- if $hostPorts }}
          hostPort: 8088
{{- end }}
          name: splunk-hec
        - containerPort: 8888
          name: metrics
        - containerPort: 13133
          name: health
        readinessProbe:
          failureThreshold: 3
          httpGet:
            path: /
            port: health
          periodSeconds: 10
        resources:
          limits:
            cpu: "1"
            ephemeral-storage: 4Gi
{{- if (not $ebpf) }}
            memory: 512Mi
{{- end }}
{{- if $ebpf }}
            memory: 1000Mi
{{- end }}
          requests:
{{- if (not $ebpf) }}
            cpu: 150m
{{- end }}
{{- if $ebpf }}
            cpu: 250m
{{- end }}
            ephemeral-storage: 1Gi
{{- if (not $ebpf) }}
            memory: 400Mi
{{- end }}
{{- if $ebpf }}
            memory: 800Mi
{{- end }}
        securityContext:
          allowPrivilegeEscalation: false
{{- if $ebpf }}
          appArmorProfile:
            type: Unconfined
{{- end }}
          capabilities:
{{- if $ebpf }}
            add:
            - BPF
            - PERFMON
            - SYS_PTRACE
            - CHECKPOINT_RESTORE
            - SYSLOG
            - DAC_READ_SEARCH
            - SETUID
            - SETGID
            - SYS_RESOURCE
            - IPC_LOCK
{{- end }}
            drop:
            - ALL
          readOnlyRootFilesystem: true
{{- if $ebpf }}
          seLinuxOptions:
            type: spc_t
{{- end }}
        startupProbe:
          failureThreshold: 24
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        volumeMounts:
{{- if $ebpf }}
        - mountPath: /sys/kernel/tracing
          name: tracefs
          readOnly: true
{{- end }}
        - mountPath: /etc/otelcol-profiles
          name: config
          readOnly: true
        - mountPath: /var/lib/otelcol-profiles
          name: queue
{{- if $securePorts }}
        - mountPath: /etc/otelcol-profiles-ports
          name: ports
          readOnly: true
{{- end }}
      enableServiceLinks: false
{{- if $ebpf }}
      hostPID: true
{{- end }}
      nodeSelector:
        kubernetes.io/os: linux
      priorityClassName: otelcol-profiles-agent
      securityContext:
        fsGroup: 65532
{{- if (not $ebpf) }}
        runAsGroup: 65532
        runAsNonRoot: true
        runAsUser: 65532
{{- end }}
{{- if $ebpf }}
        runAsGroup: 0
        runAsNonRoot: false
        runAsUser: 0
{{- end }}
        seccompProfile:
          type: RuntimeDefault
      serviceAccountName: otelcol-profiles-agent
      terminationGracePeriodSeconds: 30
      tolerations:
      - operator: Exists
      volumes:
{{- if $ebpf }}
      - hostPath:
          path: /sys/kernel/tracing
          type: Directory
        name: tracefs
{{- end }}
      - configMap:
          name: otelcol-profiles-agent
        name: config
      - emptyDir:
          sizeLimit: 3Gi
        name: queue
{{- if $securePorts }}
      - name: ports
        projected:
          sources:
          - configMap:
              name: otelcol-profiles-ports
          - secret:
              name: otelcol-profiles-ports
{{- end }}
  updateStrategy:
    rollingUpdate:
      maxUnavailable: 10%
    type: RollingUpdate
{{- if (and $gateway (not $volumes)) }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
    otelcol-profiles/sends-to: backend
  name: otelcol-profiles-gateway
spec:
  selector:
    matchLabels:
      app.kubernetes.io/component: gateway
      app.kubernetes.io/name: otelcol-profiles
  strategy:
    rollingUpdate:
      maxSurge: 25%
      maxUnavailable: 0
    type: RollingUpdate
  template:
    metadata:
      labels:
        app.kubernetes.io/component: gateway
        app.kubernetes.io/name: otelcol-profiles
        app.kubernetes.io/part-of: otelcol-profiles
    spec:
      automountServiceAccountToken: false
      containers:
      - args:
        - --config=/etc/otelcol-profiles/config.yaml
{{- if $token }}
        - '--config=yaml:exporters::otlp_grpc::headers::authorization: Bearer ${env:BACKEND_TOKEN}'
{{- end }}
{{- if $securePorts }}
        - --config=/etc/otelcol-profiles-ports/gateway.yaml
{{- end }}
        env:
        - name: GOMEMLIMIT
          valueFrom:
            resourceFieldRef:
              containerName: otelcol-profiles
              divisor: "1"
              resource: requests.memory
{{- if $token }}
        - name: BACKEND_TOKEN
          valueFrom:
            secretKeyRef:
              key: token
              name: otelcol-profiles-backend
{{- end }}
        envFrom:
        - configMapRef:
            name: otelcol-profiles-gateway-env
        image: otelcol-profiles
        lifecycle:
          preStop:
            sleep:
              seconds: 5
        livenessProbe:
          failureThreshold: 3
          httpGet:
            path: /
            port: health
          periodSeconds: 20
          timeoutSeconds: 5
        name: otelcol-profiles
        ports:
        - containerPort: 4317
          name: otlp-grpc
        - containerPort: 4318
          name: otlp-http
        - containerPort: 8888
          name: metrics
        - containerPort: 13133
          name: health
        readinessProbe:
          failureThreshold: 2
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        resources:
          limits:
            cpu: "2"
            memory: 1Gi
          requests:
            cpu: 500m
            memory: 800Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
          readOnlyRootFilesystem: true
        startupProbe:
          failureThreshold: 24
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        volumeMounts:
        - mountPath: /etc/otelcol-profiles
          name: config
          readOnly: true
{{- if $securePorts }}
        - mountPath: /etc/otelcol-profiles-ports
          name: ports
          readOnly: true
{{- end }}
      enableServiceLinks: false
      nodeSelector:
        kubernetes.io/os: linux
      securityContext:
        runAsGroup: 65532
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile:
          type: RuntimeDefault
      serviceAccountName: otelcol-profiles-gateway
      terminationGracePeriodSeconds: 60
      topologySpreadConstraints:
      - labelSelector:
          matchLabels:
            app.kubernetes.io/component: gateway
            app.kubernetes.io/name: otelcol-profiles
        matchLabelKeys:
        - pod-template-hash
        maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
      - labelSelector:
          matchLabels:
            app.kubernetes.io/component: gateway
            app.kubernetes.io/name: otelcol-profiles
        matchLabelKeys:
        - pod-template-hash
        maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
      volumes:
      - configMap:
          name: otelcol-profiles-gateway
        name: config
{{- if $securePorts }}
      - name: ports
        projected:
          sources:
          - configMap:
              name: otelcol-profiles-ports
          - secret:
              name: otelcol-profiles-ports
{{- end }}
{{- end }}
{{- if $gateway }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  labels:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-gateway
spec:
  behavior:
    scaleDown:
{{- if (not $volumes) }}
      policies:
      - periodSeconds: 120
        type: Pods
        value: 1
      stabilizationWindowSeconds: 600
{{- end }}
{{- if $volumes }}
      selectPolicy: Disabled
{{- end }}
  maxReplicas: 10
  metrics:
  - resource:
      name: cpu
      target:
        averageUtilization: 75
        type: Utilization
    type: Resource
{{- if (not $volumes) }}
  - resource:
      name: memory
      target:
        averageUtilization: 80
        type: Utilization
    type: Resource
{{- end }}
  minReplicas: 2
  scaleTargetRef:
    apiVersion: apps/v1
{{- if (not $volumes) }}
    kind: Deployment
{{- end }}
{{- if $volumes }}
    kind: StatefulSet
{{- end }}
    name: otelcol-profiles-gateway
{{- end }}
---
apiVersion: v1
kind: Namespace
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
{{- if (and (not $hostPorts) (not $ebpf)) }}
    pod-security.kubernetes.io/audit: restricted
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
{{- end }}
{{- if (or $hostPorts $ebpf) }}
    pod-security.kubernetes.io/audit: privileged
    pod-security.kubernetes.io/enforce: privileged
    pod-security.kubernetes.io/warn: privileged
{{- end }}
  name: otelcol-profiles
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  labels:
    app.kubernetes.io/component: agent
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
spec:
  ingress:
  - from:
    - namespaceSelector: {}
    ports:
    - port: otlp-grpc
      protocol: TCP
    - port: otlp-http
      protocol: TCP
    - port: pprof-push
      protocol: TCP
    - port: splunk-hec
      protocol: TCP
    - port: metrics
      protocol: TCP
  podSelector:
    matchLabels:
      app.kubernetes.io/component: agent
      app.kubernetes.io/name: otelcol-profiles
  policyTypes:
  - Ingress
{{- if $gateway }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  labels:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-gateway
spec:
  egress:
  - ports:
    - port: 53
      protocol: UDP
  - ports:
    - endPort: 65535
      port: 1
      protocol: TCP
  ingress:
  - from:
    - podSelector:
        matchLabels:
          app.kubernetes.io/component: agent
          app.kubernetes.io/name: otelcol-profiles
    ports:
    - port: otlp-grpc
      protocol: TCP
    - port: otlp-http
      protocol: TCP
  - from:
    - namespaceSelector: {}
    ports:
    - port: metrics
      protocol: TCP
  podSelector:
    matchLabels:
      app.kubernetes.io/component: gateway
      app.kubernetes.io/name: otelcol-profiles
  policyTypes:
  - Ingress
  - Egress
{{- end }}
{{- if $page }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  labels:
    app.kubernetes.io/component: page
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-page
spec:
  ingress:
  - from:
    - podSelector:
        matchLabels:
          app.kubernetes.io/component: agent
          app.kubernetes.io/name: otelcol-profiles
    ports:
    - port: otlp-grpc
      protocol: TCP
    - port: otlp-http
      protocol: TCP
  - from:
    - namespaceSelector: {}
    ports:
    - port: metrics
      protocol: TCP
  podSelector:
    matchLabels:
      app.kubernetes.io/component: page
      app.kubernetes.io/name: otelcol-profiles
  policyTypes:
  - Ingress
  - Egress
{{- end }}
{{- if $gateway }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  labels:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-gateway
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/component: gateway
      app.kubernetes.io/name: otelcol-profiles
  unhealthyPodEvictionPolicy: AlwaysAllow
{{- end }}
---
apiVersion: scheduling.k8s.io/v1
description: Agents of otelcol-profiles, one on each node.
kind: PriorityClass
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
preemptionPolicy: Never
value: 1000
---
apiVersion: v1
kind: Service
metadata:
  labels:
    app.kubernetes.io/component: agent
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
spec:
  internalTrafficPolicy: Local
  ports:
{{- if (not $securePorts) }}
  - appProtocol: kubernetes.io/h2c
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: otlp-grpc
    port: 4317
    targetPort: otlp-grpc
{{- if (not $securePorts) }}
  - appProtocol: http
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: otlp-http
    port: 4318
    targetPort: otlp-http
{{- if (not $securePorts) }}
  - appProtocol: http
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: pprof-push
    port: 4040
    targetPort: pprof-push
{{- if (not $securePorts) }}
  - appProtocol: http
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: splunk-hec
    port: 8088
    targetPort: splunk-hec
  selector:
    app.kubernetes.io/component: agent
    app.kubernetes.io/name: otelcol-profiles
{{- if $gateway }}
---
apiVersion: v1
kind: Service
metadata:
  labels:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-gateway
spec:
  ports:
{{- if (not $securePorts) }}
  - appProtocol: kubernetes.io/h2c
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: otlp-grpc
    port: 4317
    targetPort: otlp-grpc
{{- if (not $securePorts) }}
  - appProtocol: http
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: otlp-http
    port: 4318
    targetPort: otlp-http
  selector:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
{{- end }}
{{- if $page }}
---
apiVersion: v1
kind: Service
metadata:
  labels:
    app.kubernetes.io/component: page
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-page
spec:
  ports:
{{- if (not $securePorts) }}
  - appProtocol: kubernetes.io/h2c
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: otlp-grpc
    port: 4317
    targetPort: otlp-grpc
{{- if (not $securePorts) }}
  - appProtocol: http
{{- end }}
{{- if $securePorts }}
  - appProtocol: https
{{- end }}
    name: otlp-http
    port: 4318
    targetPort: otlp-http
  selector:
    app.kubernetes.io/component: page
    app.kubernetes.io/name: otelcol-profiles
{{- end }}
---
apiVersion: v1
automountServiceAccountToken: false
kind: ServiceAccount
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-agent
{{- if $gateway }}
---
apiVersion: v1
automountServiceAccountToken: false
kind: ServiceAccount
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-gateway
{{- end }}
{{- if $page }}
---
apiVersion: v1
automountServiceAccountToken: false
kind: ServiceAccount
metadata:
  labels:
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-page
{{- end }}
{{- if $volumes }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  labels:
    app.kubernetes.io/component: gateway
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
    otelcol-profiles/sends-to: backend
  name: otelcol-profiles-gateway
spec:
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: Retain
    whenScaled: Retain
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      app.kubernetes.io/component: gateway
      app.kubernetes.io/name: otelcol-profiles
  serviceName: otelcol-profiles-gateway
  template:
    metadata:
      labels:
        app.kubernetes.io/component: gateway
        app.kubernetes.io/name: otelcol-profiles
        app.kubernetes.io/part-of: otelcol-profiles
    spec:
      automountServiceAccountToken: false
      containers:
      - args:
        - --config=/etc/otelcol-profiles/config.yaml
        - --config=/etc/otelcol-profiles/queue.yaml
{{- if $token }}
        - '--config=yaml:exporters::otlp_grpc::headers::authorization: Bearer ${env:BACKEND_TOKEN}'
{{- end }}
{{- if $securePorts }}
        - --config=/etc/otelcol-profiles-ports/gateway.yaml
        - '--config=yaml:service::extensions: [file_storage, health_check, bearertokenauth/agents]'
{{- end }}
        env:
        - name: GOMEMLIMIT
          valueFrom:
            resourceFieldRef:
              containerName: otelcol-profiles
              divisor: "1"
              resource: requests.memory
{{- if $token }}
        - name: BACKEND_TOKEN
          valueFrom:
            secretKeyRef:
              key: token
              name: otelcol-profiles-backend
{{- end }}
        envFrom:
        - configMapRef:
            name: otelcol-profiles-gateway-env
        image: otelcol-profiles
        lifecycle:
          preStop:
            sleep:
              seconds: 5
        livenessProbe:
          failureThreshold: 3
          httpGet:
            path: /
            port: health
          periodSeconds: 20
          timeoutSeconds: 5
        name: otelcol-profiles
        ports:
        - containerPort: 4317
          name: otlp-grpc
        - containerPort: 4318
          name: otlp-http
        - containerPort: 8888
          name: metrics
        - containerPort: 13133
          name: health
        readinessProbe:
          failureThreshold: 2
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        resources:
          limits:
            cpu: "2"
            memory: 1Gi
          requests:
            cpu: 500m
            memory: 800Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
          readOnlyRootFilesystem: true
        startupProbe:
          failureThreshold: 24
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        volumeMounts:
        - mountPath: /etc/otelcol-profiles
          name: config
          readOnly: true
        - mountPath: /var/lib/otelcol-profiles
          name: queue
{{- if $securePorts }}
        - mountPath: /etc/otelcol-profiles-ports
          name: ports
          readOnly: true
{{- end }}
      enableServiceLinks: false
      nodeSelector:
        kubernetes.io/os: linux
      securityContext:
        fsGroup: 65532
        runAsGroup: 65532
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile:
          type: RuntimeDefault
      serviceAccountName: otelcol-profiles-gateway
      terminationGracePeriodSeconds: 60
      topologySpreadConstraints:
      - labelSelector:
          matchLabels:
            app.kubernetes.io/component: gateway
            app.kubernetes.io/name: otelcol-profiles
        matchLabelKeys:
        - controller-revision-hash
        maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
      - labelSelector:
          matchLabels:
            app.kubernetes.io/component: gateway
            app.kubernetes.io/name: otelcol-profiles
        matchLabelKeys:
        - controller-revision-hash
        maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
      volumes:
      - configMap:
          name: otelcol-profiles-gateway
        name: config
{{- if $securePorts }}
      - name: ports
        projected:
          sources:
          - configMap:
              name: otelcol-profiles-ports
          - secret:
              name: otelcol-profiles-ports
{{- end }}
  volumeClaimTemplates:
  - metadata:
      name: queue
    spec:
      accessModes:
      - ReadWriteOnce
      resources:
        requests:
          storage: 4Gi
{{- end }}
{{- if $page }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  labels:
    app.kubernetes.io/component: page
    app.kubernetes.io/name: otelcol-profiles
    app.kubernetes.io/part-of: otelcol-profiles
  name: otelcol-profiles-page
spec:
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: Retain
    whenScaled: Retain
  replicas: 1
  selector:
    matchLabels:
      app.kubernetes.io/component: page
      app.kubernetes.io/name: otelcol-profiles
  serviceName: otelcol-profiles-page
  template:
    metadata:
      labels:
        app.kubernetes.io/component: page
        app.kubernetes.io/name: otelcol-profiles
        app.kubernetes.io/part-of: otelcol-profiles
    spec:
      automountServiceAccountToken: false
      containers:
      - args:
        - --config=/etc/otelcol-profiles/config.yaml
{{- if $securePorts }}
        - --config=/etc/otelcol-profiles-ports/gateway.yaml
{{- end }}
        env:
        - name: GOMEMLIMIT
          valueFrom:
            resourceFieldRef:
              containerName: otelcol-profiles
              divisor: "1"
              resource: requests.memory
        image: otelcol-profiles
        livenessProbe:
          failureThreshold: 3
          httpGet:
            path: /
            port: health
          periodSeconds: 20
          timeoutSeconds: 5
        name: otelcol-profiles
        ports:
        - containerPort: 4317
          name: otlp-grpc
        - containerPort: 4318
          name: otlp-http
        - containerPort: 8888
          name: metrics
        - containerPort: 13133
          name: health
        readinessProbe:
          failureThreshold: 2
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        resources:
          limits:
            cpu: "2"
            memory: 2Gi
          requests:
            cpu: 250m
            memory: 1600Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
          readOnlyRootFilesystem: true
        startupProbe:
          failureThreshold: 24
          httpGet:
            path: /
            port: health
          periodSeconds: 5
        volumeMounts:
        - mountPath: /etc/otelcol-profiles
          name: config
          readOnly: true
        - mountPath: /var/lib/otelcol-profiles
          name: store
{{- if $securePorts }}
        - mountPath: /etc/otelcol-profiles-ports
          name: ports
          readOnly: true
{{- end }}
      enableServiceLinks: false
      nodeSelector:
        kubernetes.io/os: linux
      securityContext:
        fsGroup: 65532
        runAsGroup: 65532
        runAsNonRoot: true
        runAsUser: 65532
        seccompProfile:
          type: RuntimeDefault
      serviceAccountName: otelcol-profiles-page
      terminationGracePeriodSeconds: 60
      volumes:
      - configMap:
          name: otelcol-profiles-page
        name: config
{{- if $securePorts }}
      - name: ports
        projected:
          sources:
          - configMap:
              name: otelcol-profiles-ports
          - secret:
              name: otelcol-profiles-ports
{{- end }}
  volumeClaimTemplates:
  - metadata:
      labels:
        app.kubernetes.io/part-of: otelcol-profiles
      name: store
    spec:
      accessModes:
      - ReadWriteOnce
      resources:
        requests:
          storage: 20Gi
{{- end }}
{{- end }}
