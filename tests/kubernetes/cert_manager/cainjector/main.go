// The injectors of cert-manager, which write authorities into webhook configurations and definitions.
package main

import (
	"flag"
	"log"

	"github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/util"
	"github.com/cert-manager/cert-manager/pkg/util/feature"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	gates := flag.String("feature-gates", "", "features that are switched on or off, such as CAInjectorMerging=false")
	flag.Parse() // --kubeconfig is a flag of controller-runtime
	utilruntime.Must(feature.DefaultMutableFeatureGate.Set(*gates))
	config := util.RestConfigWithUserAgent(ctrl.GetConfigOrDie(), "cainjector")
	ctrl.SetLogger(klog.Background())
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubernetes.AddToScheme, scheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		utilruntime.Must(add(known))
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  known,
		Metrics: metrics.Options{BindAddress: "0"},
		// Only the metadata of Secrets is watched, so their data must be read from the server.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := ctrl.SetupSignalHandler()
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName:                     true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := manager.Start(ctx); err != nil {
		log.Fatal(err)
	}
}
