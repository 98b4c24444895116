"""The numbers of fields in protocol buffers: services and what routes to them.

Written in the notation of `numbers`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Service metadata 1 spec 2 status 3
ServiceSpec ports 1 selector 2 clusterIP 3 type 4 externalIPs 5 sessionAffinity 7 loadBalancerIP 8
  loadBalancerSourceRanges 9 externalName 10 externalTrafficPolicy 11 healthCheckNodePort 12
  publishNotReadyAddresses 13 sessionAffinityConfig 14 ipFamilyPolicy 17 clusterIPs 18 ipFamilies 19
  allocateLoadBalancerNodePorts 20 loadBalancerClass 21 internalTrafficPolicy 22 trafficDistribution 23
ServicePort name 1 protocol 2 port 3 targetPort 4 nodePort 5 appProtocol 6
SessionAffinityConfig clientIP 1
ClientIPConfig timeoutSeconds 1
ServiceStatus loadBalancer 1 conditions 2
LoadBalancerStatus ingress 1
LoadBalancerIngress ip 1 hostname 2 ipMode 3 ports 4
PortStatus port 1 protocol 2 error 3
Endpoints metadata 1 subsets 2
EndpointSubset addresses 1 notReadyAddresses 2 ports 3
EndpointAddress ip 1 targetRef 2 hostname 3 nodeName 4
EndpointPort name 1 port 2 protocol 3 appProtocol 4
EndpointSlice metadata 1 endpoints 2 ports 3 addressType 4
Endpoint addresses 1 conditions 2 hostname 3 targetRef 4 deprecatedTopology 5 nodeName 6 zone 7 hints 8
EndpointConditions ready 1 serving 2 terminating 3
EndpointHints forZones 1 forNodes 2
ForNode name 1
ForZone name 1
EndpointSlicePort name 1 protocol 2 port 3 appProtocol 4
Ingress metadata 1 spec 2 status 3
IngressSpec defaultBackend 1 tls 2 rules 3 ingressClassName 4
IngressBackend resource 3 service 4
IngressServiceBackend name 1 port 2
ServiceBackendPort name 1 number 2
IngressRule host 1
IngressRule/2 http 1
HTTPIngressRuleValue paths 1
HTTPIngressPath path 1 backend 2 pathType 3
IngressTLS hosts 1 secretName 2
IngressStatus loadBalancer 1
IngressLoadBalancerStatus ingress 1
IngressLoadBalancerIngress ip 1 hostname 2 ports 4
IngressPortStatus port 1 protocol 2 error 3
IngressClass metadata 1 spec 2
IngressClassSpec controller 1 parameters 2
IngressClassParametersReference apiGroup 1 kind 2 name 3 scope 4 namespace 5
NetworkPolicy metadata 1 spec 2
NetworkPolicySpec podSelector 1 ingress 2 egress 3 policyTypes 4
NetworkPolicyEgressRule ports 1 to 2
NetworkPolicyPort protocol 1 port 2 endPort 3
NetworkPolicyPeer podSelector 1 namespaceSelector 2 ipBlock 3
IPBlock cidr 1 except 2
NetworkPolicyIngressRule ports 1 from 2
"""
